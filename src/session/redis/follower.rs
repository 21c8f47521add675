//! Following a stream: what came before, then what comes.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    Inner, RETRY, hub::Subscriber, lease_renewal::Hold, scripts::Place, writer::last_words,
};
use crate::{
    protocol::RequestId,
    redis::{RedisError, cmd, pipe},
    session::{Deliveries, Delivery, Event, EventId, SessionError},
};

/// How many messages are read at once.
const BATCH: usize = 256;

/// How often to look whether the writer lives. One that is missed twice is
/// gone; once may be a Redis that has just come back.
const LOOK: Duration = Duration::from_millis(2500);

/// How long a Redis that does not answer is put up with: longer than writers
/// do, so that whoever comes back then finds out what became of the call.
const PATIENCE: Duration = Duration::from_secs(super::PATIENCE.as_secs() + 2);

/// How long the news that a session has ended may come after its streams are gone.
const NEWS: Duration = Duration::from_millis(500);

/// Follows until it is dropped or another takes its place.
pub(super) struct Following {
    inner: Arc<Inner>,
    place: Place,
    stream: Arc<str>,
    /// The session's own stream, which no call writes.
    own: bool,
    position: u64,
    number: u64,
    subscriber: Arc<Subscriber>,
    _hold: Hold,
    read: VecDeque<Event>,
    trouble: Option<Instant>,
    missed: bool,
}

/// What stands in a stream after a position.
struct Read {
    mine: bool,
    trimmed: u64,
    closed: bool,
    disconnect: Option<Duration>,
    writer: Option<(String, String)>,
    events: VecDeque<Event>,
}

/// `HMGET` of a log, and `XRANGE` of its entries.
type Answer = (Vec<Option<String>>, Vec<(String, Vec<Vec<u8>>)>);

impl Inner {
    /// Follows from after `position`, or the session's own stream from the
    /// first message that nobody was given.
    pub(super) async fn follow(
        self: &Arc<Self>,
        place: Place,
        after: Option<&EventId>,
    ) -> Result<(EventId, Deliveries), SessionError> {
        self.hub.listening().await?;
        let (number, subscriber) = self.hub.follower(Arc::clone(&place.id));
        let hold = self.held.hold(&place, None);
        // From here on, dropping it takes everything back.
        let mut following = Following {
            inner: Arc::clone(self),
            place,
            stream: after.map_or("".into(), |after| Arc::clone(&after.stream)),
            own: false,
            position: 0,
            number,
            subscriber,
            _hold: hold,
            read: VecDeque::new(),
            trouble: None,
            missed: false,
        };
        let shown = || after.map(ToString::to_string).unwrap_or_default();
        let call = following.place.session(&self.scripts.follow);
        let call = call.arg(crate::redis::escape(&following.stream));
        let call = call.arg(after.map_or(0, |after| after.position));
        let call = call.arg(self.hub.channel()).arg(number);
        let answer: Vec<String> =
            self.redis.call(&call).await.map_err(|error| self.unavailable(&error))?;
        match &answer[..] {
            [ok, stream, position, own] if ok == "ok" => {
                following.stream = stream.as_str().into();
                following.position = position.parse().unwrap_or(0);
                following.own = own == "own";
            }
            [refusal, ..] if refusal == "trimmed" => return Err(SessionError::Trimmed(shown())),
            [refusal, ..] if refusal == "no stream" => return Err(SessionError::NoStream(shown())),
            _ => return Err(SessionError::NotFound),
        }
        let start = EventId { stream: Arc::clone(&following.stream), position: following.position };
        let deliveries = stream::unfold(Some(following), |following| async move {
            let mut following = following?;
            let next = following.next().await?;
            let goes_on = matches!(next, Ok(Delivery::Event(_)));
            Some((next, goes_on.then_some(following)))
        });
        Ok((start, deliveries.boxed()))
    }
}

impl Following {
    async fn next(&mut self) -> Option<Result<Delivery, SessionError>> {
        let subscriber = Arc::clone(&self.subscriber);
        loop {
            let mut woken = std::pin::pin!(subscriber.woken.notified());
            woken.as_mut().enable();
            if subscriber.is_cut() {
                return None;
            }
            if let Some(event) = self.read.pop_front() {
                return self.deliver(event).await;
            }
            let read = match self.read().await {
                Ok(read) => read,
                Err(error) => {
                    let since = *self.trouble.get_or_insert_with(Instant::now);
                    if since.elapsed() >= PATIENCE {
                        return Some(Err(self.inner.unavailable(&error)));
                    }
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            self.trouble = None;
            let Some(read) = read else {
                // Not there: with its session, if that has ended.
                let _ = tokio::time::timeout(NEWS, woken).await;
                return if subscriber.is_cut() { None } else { Some(Err(self.no_stream())) };
            };
            if !read.mine {
                return None;
            }
            if read.trimmed > self.position {
                return Some(Err(SessionError::Trimmed(self.id().to_string())));
            }
            if !read.events.is_empty() {
                self.read = read.events;
                continue;
            }
            if read.closed {
                return None;
            }
            if let Some(retry) = read.disconnect {
                return Some(Ok(Delivery::Disconnect { retry }));
            }
            if self.own {
                woken.await;
            } else if tokio::time::timeout(LOOK, woken).await.is_err()
                && let Some((writer, call)) = read.writer
            {
                self.judge(&writer, &call).await;
            }
        }
    }

    async fn deliver(&mut self, event: Event) -> Option<Result<Delivery, SessionError>> {
        if self.own {
            let call = self.place.stream(&self.inner.scripts.seen, &self.stream);
            let call = call.arg(self.inner.hub.channel()).arg(self.number).arg(event.id.position);
            match self.inner.redis.call::<Vec<String>>(&call).await {
                Ok(answer) if answer[0] == "ok" => {}
                Ok(_) => return None,
                Err(error) => return Some(Err(self.inner.unavailable(&error))),
            }
        }
        self.position = event.id.position;
        Some(Ok(Delivery::Event(event)))
    }

    /// Nothing when there is no such stream any more.
    async fn read(&self) -> Result<Option<Read>, RedisError> {
        let mut both = pipe();
        both.atomic();
        let fields =
            ["channel", "follower", "trimmed", "until", "disconnect", "writer", "call", "last"];
        both.add_command(cmd("HMGET").arg(self.place.log(&self.stream)).arg(&fields).clone());
        // What others have been given in the meantime must not be noted for us.
        let count = if self.own { 1 } else { BATCH };
        let mut range = cmd("XRANGE");
        range.arg(self.place.entries(&self.stream)).arg(format!("(0-{}", self.position));
        both.add_command(range.arg("+").arg("COUNT").arg(count).clone());
        let (log, entries): Answer = self.inner.redis.pipeline(&both).await?;
        let mut log = log.into_iter();
        let mut field = || log.next().flatten();
        let (channel, follower, trimmed) = (field(), field(), field());
        let (until, disconnect, writer, call) = (field(), field(), field(), field());
        if field().is_none() {
            return Ok(None);
        }
        let event = |(id, fields): (String, Vec<Vec<u8>>)| {
            let position = id.rsplit_once('-')?.1.parse().ok()?;
            let id = EventId { stream: Arc::clone(&self.stream), position };
            Some(Event { id, data: fields.into_iter().nth(1)?.into() })
        };
        let number = self.number.to_string();
        Ok(Some(Read {
            mine: channel == Some(self.inner.hub.channel()) && follower == Some(number),
            trimmed: trimmed.and_then(|trimmed| trimmed.parse().ok()).unwrap_or(0),
            closed: until.is_some(),
            disconnect: disconnect.and_then(|ms| ms.parse().ok()).map(Duration::from_millis),
            writer: writer.zip(call),
            events: entries.into_iter().filter_map(event).collect(),
        }))
    }

    /// Ends the stream if its writer is gone: once, whoever finds out.
    async fn judge(&mut self, writer: &str, call: &str) {
        if *writer == **self.inner.instance.name() {
            return;
        }
        match self.inner.instance.alive().await {
            Ok(alive) if alive.iter().any(|instance| instance == writer) => self.missed = false,
            Ok(_) if !self.missed => self.missed = true,
            Ok(_) => {
                let Ok(call) = serde_json::from_str::<RequestId>(call) else { return };
                let words = last_words(&call);
                // It is tried again where it fails.
                let _ = self.inner.close(&self.place, &self.stream, writer, &words).await;
            }
            // The next reading says so, too.
            Err(_) => {}
        }
    }

    fn id(&self) -> EventId {
        EventId { stream: Arc::clone(&self.stream), position: self.position }
    }

    fn no_stream(&self) -> SessionError {
        SessionError::NoStream(self.id().to_string())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.inner.hub.forget(self.number);
        // Whoever follows next takes the place anyway.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (inner, place) = (Arc::clone(&self.inner), self.place.clone());
        let (stream, number, cut) =
            (Arc::clone(&self.stream), self.number, self.subscriber.is_cut());
        if stream.is_empty() || cut {
            return;
        }
        runtime.spawn(async move {
            let call = place.stream(&inner.scripts.leave, &stream);
            let call = call.arg(inner.hub.channel()).arg(number);
            let _ = inner.redis.call::<Vec<String>>(&call).await;
        });
    }
}
