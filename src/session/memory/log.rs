//! A stream's log in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::Notify;

use crate::session::{Deliveries, Delivery, Event, EventId, SessionError};

/// Appended by one, followed by at most one at a time.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) stream: Arc<str>,
    max_events: usize,
    max_bytes: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Bytes>,
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
}

impl Log {
    pub(super) fn new(stream: Arc<str>, max_events: usize, max_bytes: usize) -> Self {
        Self { stream, max_events, max_bytes, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn append(&self, message: Bytes) {
        {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            state.bytes += message.len();
            state.events.push_back(message);
            // The newest is kept whatever its size: it may be the result.
            while state.events.len() > 1
                && (state.events.len() > self.max_events || state.bytes > self.max_bytes)
            {
                let oldest = state.events.pop_front().map_or(0, |e| e.len());
                state.bytes -= oldest;
                state.trimmed += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Appends unless the same message is the last and nobody has seen it yet:
    /// saying twice that a list changed says nothing more.
    pub(super) fn append_once(&self, message: Bytes) {
        let waiting = {
            let state = self.lock();
            let end = state.trimmed + state.events.len() as u64;
            end > state.delivered && state.events.back() == Some(&message)
        };
        if !waiting {
            self.append(message);
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
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

    pub(super) fn is_followed(&self) -> bool {
        self.lock().following
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn delivered(&self) -> u64 {
        self.lock().delivered
    }

    /// Events after `position`, as they come.
    pub(super) fn follow(self: &Arc<Self>, position: u64) -> Result<Deliveries, SessionError> {
        let follower = {
            let mut state = self.lock();
            let end = state.trimmed + state.events.len() as u64;
            let id = EventId { stream: Arc::clone(&self.stream), position }.to_string();
            if position > end {
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
                if let Some(data) = state.events.get(index).cloned() {
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
        }
    }
}
