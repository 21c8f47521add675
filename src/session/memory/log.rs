//! A stream's log in memory.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{
    clock::{Clock, Timestamp},
    session::{Deliveries, Delivery, Event, EventId, SessionError, SessionLimits},
};

/// Appended by one, followed by at most one at a time.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) stream: Arc<str>,
    max_events: usize,
    max_bytes: usize,
    max_age: Duration,
    replay: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<(Timestamp, Bytes)>,
    bytes: usize,
    /// How many events were dropped from the front.
    trimmed: u64,
    /// The last position that a follower was given.
    delivered: u64,
    /// Counts followers: an earlier one sees that it is no longer the one.
    follower: u64,
    following: bool,
    /// The one who follows now is asked to go, once it has seen everything.
    disconnect: Option<Duration>,
    closed: bool,
    /// When it was last written or followed, if that is over.
    used: Timestamp,
    /// The last change that was announced here.
    change: Option<Box<str>>,
}

impl Log {
    pub(super) fn new(stream: Arc<str>, limits: &SessionLimits, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            events: VecDeque::new(),
            bytes: 0,
            trimmed: 0,
            delivered: 0,
            follower: 0,
            following: false,
            disconnect: None,
            closed: false,
            used: Timestamp::from_millis(0),
            change: None,
        };
        Self {
            stream,
            max_events: limits.events_per_stream,
            max_bytes: limits.bytes_per_stream,
            max_age: limits.message_age,
            replay: limits.replay,
            clock,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn append(&self, message: Bytes) {
        let now = self.clock.now();
        {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            state.bytes += message.len();
            state.events.push_back((now, message));
            while self.is_over(&state, now) {
                let oldest = state.events.pop_front().map_or(0, |(_, message)| message.len());
                state.bytes -= oldest;
                state.trimmed += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Whether the oldest must go. The newest is kept whatever its size: it may
    /// be the result.
    fn is_over(&self, state: &State, now: Timestamp) -> bool {
        let is_old = |(at, _): &(Timestamp, Bytes)| now.since(*at) > self.max_age;
        state.events.len() > 1
            && (state.events.len() > self.max_events
                || state.bytes > self.max_bytes
                || state.events.front().is_some_and(is_old))
    }

    /// Appends unless that change was announced already, or the same message
    /// is the last and nobody has seen it yet: saying twice that a list
    /// changed says nothing more.
    pub(super) fn append_once(&self, message: Bytes, change: Option<&str>) {
        let waiting = {
            let mut state = self.lock();
            if change.is_some() && state.change.as_deref() == change {
                return;
            }
            state.change = change.map(Into::into);
            let end = state.trimmed + state.events.len() as u64;
            let last = state.events.back().map(|(_, last)| last);
            end > state.delivered && last == Some(&message)
        };
        if !waiting {
            self.append(message);
        }
    }

    pub(super) fn close(&self) {
        {
            let mut state = self.lock();
            state.closed = true;
            state.used = self.clock.now();
        }
        self.changed.notify_waiters();
    }

    /// Without effect when nobody follows.
    pub(super) fn disconnect(&self, retry: Duration) {
        {
            let mut state = self.lock();
            state.disconnect = state.following.then_some(retry);
        }
        self.changed.notify_waiters();
    }

    /// When it was last in use: now, if somebody follows it or writes it. The
    /// session's own is written by nobody in particular.
    pub(super) fn last_used(&self, own: bool) -> Timestamp {
        let state = self.lock();
        let in_use = state.following || !(own || state.closed);
        if in_use { self.clock.now() } else { state.used }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The position before the first message that no follower was given and
    /// that is still kept.
    pub(super) fn undelivered(&self) -> u64 {
        let state = self.lock();
        state.delivered.max(state.trimmed)
    }

    /// Events after `position`, as they come.
    pub(super) fn follow(self: &Arc<Self>, position: u64) -> Result<Deliveries, SessionError> {
        let follower = {
            let mut state = self.lock();
            let end = state.trimmed + state.events.len() as u64;
            let forgotten = state.used.saturating_add(self.replay);
            let id = EventId { stream: Arc::clone(&self.stream), position }.to_string();
            if position > end || (state.closed && self.clock.now() >= forgotten) {
                return Err(SessionError::NoStream(id));
            }
            if position < state.trimmed {
                return Err(SessionError::Trimmed(id));
            }
            state.follower += 1;
            state.following = true;
            state.disconnect = None;
            state.follower
        };
        // Whoever followed before must look up to see that it is over.
        self.changed.notify_waiters();
        let following = Following { log: Arc::clone(self), follower };
        let begin = Some((following, position));
        Ok(stream::unfold(begin, |following| async move {
            let (following, position) = following?;
            let next = following.next(position).await?;
            let goes_on = matches!(next, Ok(Delivery::Event(_)));
            Some((next, goes_on.then_some((following, position + 1))))
        })
        .boxed())
    }
}

/// One follower, until it is dropped or another takes its place.
struct Following {
    log: Arc<Log>,
    follower: u64,
}

impl Following {
    async fn next(&self, position: u64) -> Option<Result<Delivery, SessionError>> {
        loop {
            let mut changed = std::pin::pin!(self.log.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.log.lock();
                if state.follower != self.follower {
                    return None;
                }
                let id = |position| EventId { stream: Arc::clone(&self.log.stream), position };
                let Some(index) = position.checked_sub(state.trimmed) else {
                    return Some(Err(SessionError::Trimmed(id(position).to_string())));
                };
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                if let Some((_, data)) = state.events.get(index).cloned() {
                    state.delivered = state.delivered.max(position + 1);
                    let event = Event { id: id(position + 1), data };
                    return Some(Ok(Delivery::Event(event)));
                }
                if state.closed {
                    return None;
                }
                if let Some(retry) = state.disconnect.take() {
                    return Some(Ok(Delivery::Disconnect { retry }));
                }
            }
            changed.await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        if state.follower == self.follower {
            state.following = false;
            if !state.closed {
                state.used = self.log.clock.now();
            }
        }
    }
}
