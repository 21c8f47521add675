//! Follows a stream: replays its existing messages, then delivers new ones.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use larder_protocol::RequestId;
use tokio::time::Instant;

use super::{
    MAX_OUTAGE, RETRY, RedisSessionStore, hub::LocalFollower, keys::SessionKeys,
    lease_renewal::Lease, unavailable, writer::lost_call_error,
};
use crate::{
    redis::{RedisError, cmd, escape, pipe},
    session::{Deliveries, Delivery, Event, EventId, SessionError},
};

/// The number of messages per read.
const BATCH: usize = 256;

/// The interval at which the follower checks whether the writer is alive. A writer that is missing
/// in two consecutive checks is gone; a single time may be a Redis that has just restarted.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(2500);

/// How long a follower retries while Redis is unreachable. Longer than a writer does, so that the
/// follower still learns how the call ended.
const MAX_FOLLOWER_OUTAGE: Duration = Duration::from_secs(MAX_OUTAGE.as_secs() + 2);

/// How long the notice that a session has ended may arrive after its streams are deleted.
const NOTICE_DELAY: Duration = Duration::from_millis(500);

/// A follower of a stream, until this value is dropped or another follower takes over.
pub(super) struct Follower {
    inner: Arc<RedisSessionStore>,
    keys: SessionKeys,
    stream: Arc<str>,
    /// Whether this is the session's standalone stream, which has no writing call.
    standalone: bool,
    position: u64,

    number: u64,
    local: Arc<LocalFollower>,
    _lease: Lease,
    unread: VecDeque<Event>,

    /// The start of the present outage of Redis.
    outage: Option<Instant>,
    /// Whether the writer was missing in the last check.
    writer_missing: bool,
}

/// A snapshot of a stream, with its messages after a position.
struct StreamSnapshot {
    is_follower: bool,
    trimmed: u64,
    closed: bool,
    disconnect: Option<Duration>,
    /// The writing instance, and the call's id (JSON).
    writer: Option<(String, String)>,
    events: VecDeque<Event>,
}

/// The replies to `HMGET` on a log and `XRANGE` on its entries.
type Replies = (Vec<Option<String>>, Vec<(String, Vec<Vec<u8>>)>);

impl RedisSessionStore {
    /// Follows a stream from after an event, or the standalone stream from the first undelivered
    /// message. Also returns the event id that precedes this message.
    pub(super) async fn follow(
        self: &Arc<Self>,
        keys: SessionKeys,
        after: Option<&EventId>,
    ) -> Result<(EventId, Deliveries), SessionError> {
        self.hub.wait_until_subscribed().await?;
        let (number, local) = self.hub.add_follower(Arc::clone(&keys.id));
        let lease = self.leases.acquire(&keys, None);

        // Created before the call, so that dropping it also undoes a failed call.
        let mut follower = Follower {
            inner: Arc::clone(self),
            keys,
            stream: after.map_or("".into(), |after| Arc::clone(&after.stream)),
            standalone: false,
            position: 0,
            number,
            local,
            _lease: lease,
            unread: VecDeque::new(),
            outage: None,
            writer_missing: false,
        };

        let event_id = || after.map(ToString::to_string).unwrap_or_default();
        let call = follower.keys.session(&self.scripts.follow);
        let call = call.arg(escape(&follower.stream));
        let call = call.arg(after.map_or(0, |after| after.position));
        let call = call.arg(self.hub.channel()).arg(number);

        let reply: Vec<String> =
            self.redis.call(&call).await.map_err(|error| unavailable(&error))?;

        match &reply[..] {
            [status, stream, position, own] if status == "ok" => {
                follower.stream = stream.as_str().into();
                follower.position = position.parse().unwrap_or(0);
                follower.standalone = own == "own";
            }
            [status, ..] if status == "trimmed" => return Err(SessionError::Trimmed(event_id())),
            [status, ..] if status == "no stream" => {
                return Err(SessionError::NoStream(event_id()));
            }
            _ => return Err(SessionError::NotFound),
        }

        let start = follower.event_id();
        let deliveries = stream::unfold(Some(follower), |follower| async move {
            let mut follower = follower?;
            let next = follower.next().await?;
            let continues = matches!(next, Ok(Delivery::Event(_)));
            Some((next, continues.then_some(follower)))
        });
        Ok((start, deliveries.boxed()))
    }
}

impl Follower {
    /// Waits for the next item. `None` ends the deliveries.
    async fn next(&mut self) -> Option<Result<Delivery, SessionError>> {
        let local = Arc::clone(&self.local);
        loop {
            let mut woken = std::pin::pin!(local.woken.notified());
            woken.as_mut().enable();
            if local.is_cut_off() {
                return None;
            }
            if let Some(event) = self.unread.pop_front() {
                return self.deliver(event).await;
            }

            let snapshot = match self.read().await {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    let since = *self.outage.get_or_insert_with(Instant::now);
                    if since.elapsed() >= MAX_FOLLOWER_OUTAGE {
                        return Some(Err(unavailable(&error)));
                    }
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };

            self.outage = None;

            let Some(snapshot) = snapshot else {
                // If the session has ended, its notice may still arrive.
                let _ = tokio::time::timeout(NOTICE_DELAY, woken).await;
                return if local.is_cut_off() { None } else { Some(Err(self.no_stream())) };
            };

            if !snapshot.is_follower {
                return None;
            }
            if snapshot.trimmed > self.position {
                return Some(Err(SessionError::Trimmed(self.event_id().to_string())));
            }

            if !snapshot.events.is_empty() {
                self.unread = snapshot.events;
                continue;
            }

            if snapshot.closed {
                return None;
            }
            if let Some(retry) = snapshot.disconnect {
                return Some(Ok(Delivery::Disconnect { retry }));
            }

            if self.standalone {
                woken.await;
            } else if tokio::time::timeout(LIVENESS_INTERVAL, woken).await.is_err()
                && let Some((writer, call)) = snapshot.writer
            {
                self.check_liveness(&writer, &call).await;
            }
        }
    }

    /// Delivers a message. On the standalone stream, this instance must still be its follower.
    async fn deliver(&mut self, event: Event) -> Option<Result<Delivery, SessionError>> {
        if self.standalone {
            let call = self.keys.stream(&self.inner.scripts.delivered, &self.stream);
            let call = call.arg(self.inner.hub.channel()).arg(self.number).arg(event.id.position);
            match self.inner.redis.call::<Vec<String>>(&call).await {
                Ok(reply) if reply[0] == "ok" => {}
                Ok(_) => return None,
                Err(error) => return Some(Err(unavailable(&error))),
            }
        }

        self.position = event.id.position;
        Some(Ok(Delivery::Event(event)))
    }

    /// Reads the stream after the present position. `None` if the stream no longer exists.
    async fn read(&self) -> Result<Option<StreamSnapshot>, RedisError> {
        let mut commands = pipe();
        commands.atomic();
        let fields =
            ["channel", "follower", "trimmed", "until", "disconnect", "writer", "call", "last"];
        commands.add_command(cmd("HMGET").arg(self.keys.log(&self.stream)).arg(&fields).clone());

        // On the standalone stream another follower may take over between two messages, so messages
        // are not read ahead.
        let count = if self.standalone { 1 } else { BATCH };
        let mut range = cmd("XRANGE");
        range.arg(self.keys.entries(&self.stream)).arg(format!("(0-{}", self.position));
        commands.add_command(range.arg("+").arg("COUNT").arg(count).clone());

        let (log, entries): Replies = self.inner.redis.pipeline(&commands).await?;

        let mut log = log.into_iter();
        let mut field = || log.next().flatten();
        let channel = field();
        let follower = field();
        let trimmed = field();
        let until = field();
        let disconnect = field();
        let writer = field();
        let call = field();
        if field().is_none() {
            return Ok(None);
        }

        let event = |(id, fields): (String, Vec<Vec<u8>>)| {
            let position = id.rsplit_once('-')?.1.parse().ok()?;
            let id = EventId { stream: Arc::clone(&self.stream), position };
            Some(Event { id, data: fields.into_iter().nth(1)?.into() })
        };

        let number = self.number.to_string();
        Ok(Some(StreamSnapshot {
            is_follower: channel == Some(self.inner.hub.channel()) && follower == Some(number),
            trimmed: trimmed.and_then(|trimmed| trimmed.parse().ok()).unwrap_or(0),
            closed: until.is_some(),
            disconnect: disconnect.and_then(|ms| ms.parse().ok()).map(Duration::from_millis),
            writer: writer.zip(call),
            events: entries.into_iter().filter_map(event).collect(),
        }))
    }

    /// Closes the stream with an error if its writer is gone. Of several attempts to close it, only
    /// the first takes effect.
    async fn check_liveness(&mut self, writer: &str, call: &str) {
        if *writer == **self.inner.instance.name() {
            return;
        }

        match self.inner.instance.alive().await {
            Ok(alive) if alive.iter().any(|instance| instance == writer) => {
                self.writer_missing = false;
            }
            Ok(_) if !self.writer_missing => self.writer_missing = true,
            Ok(_) => {
                let Ok(call) = serde_json::from_str::<RequestId>(call) else { return };
                let message = lost_call_error(&call);
                // On failure, the next check tries again.
                let _ = self.inner.close(&self.keys, &self.stream, writer, &message).await;
            }
            // The next read fails as well and handles the outage.
            Err(_) => {}
        }
    }

    fn event_id(&self) -> EventId {
        EventId { stream: Arc::clone(&self.stream), position: self.position }
    }

    fn no_stream(&self) -> SessionError {
        SessionError::NoStream(self.event_id().to_string())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.inner.hub.remove_follower(self.number);

        // Without a runtime the process is ending. The next follower takes over anyway.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.stream.is_empty() || self.local.is_cut_off() {
            return;
        }

        let inner = Arc::clone(&self.inner);
        let keys = self.keys.clone();
        let stream = Arc::clone(&self.stream);
        let number = self.number;
        runtime.spawn(async move {
            let call = keys.stream(&inner.scripts.unfollow, &stream);
            let call = call.arg(inner.hub.channel()).arg(number);
            let _ = inner.redis.call::<Vec<String>>(&call).await;
        });
    }
}
