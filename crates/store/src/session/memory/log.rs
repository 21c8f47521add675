//! [`Log`]: the messages of a stream in memory.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_runtime::{
    clock::{Clock, Timestamp},
    held::HeldBytes,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    session::budget::ReplayReservation,
    session::{Deliveries, Delivery, Event, EventId, Retention, SessionError, SessionLimits},
};

/// A log with one writer, and at most one follower at a time.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) stream: Arc<str>,
    max_events: usize,
    max_bytes: usize,
    max_age: Duration,
    replay: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<LogState>,
    changed: Notify,
}

/// The messages of a log, and its follower.
#[derive(Debug)]
struct LogState {
    events: VecDeque<(Timestamp, Bytes)>,
    bytes: usize,
    /// The number of events dropped from the front.
    trimmed: u64,
    /// The last position delivered to a follower.
    delivered: u64,

    /// The number of the present follower. Followers with lower numbers are cut off.
    follower: u64,
    following: bool,
    /// The delay for a reconnect, if the present follower must disconnect after the last event.
    disconnect: Option<Duration>,

    closed: bool,
    /// The end of the last writer or follower.
    last_used: Timestamp,

    /// The last announced change.
    last_change: Option<Box<str>>,
    /// The bytes of a finished log in the budget, counted until the log is dropped.
    reservation: Option<ReplayReservation>,
}

impl Log {
    pub(super) fn new(stream: Arc<str>, limits: &SessionLimits, clock: Arc<dyn Clock>) -> Self {
        let state = LogState {
            events: VecDeque::new(),
            bytes: 0,
            trimmed: 0,
            delivered: 0,
            follower: 0,
            following: false,
            disconnect: None,
            closed: false,
            last_used: Timestamp::from_millis(0),
            last_change: None,
            reservation: None,
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

    pub(super) fn append(&self, message: Bytes) {
        self.push(&mut self.state.lock(), message);
        self.changed.notify_waiters();
    }

    /// Appends a message, if there is a follower. Returns whether there is one.
    pub(super) fn append_followed(&self, message: Bytes) -> bool {
        {
            let mut state = self.state.lock();
            if !state.following {
                return false;
            }
            self.push(&mut state, message);
        }
        self.changed.notify_waiters();
        true
    }

    fn push(&self, state: &mut LogState, message: Bytes) {
        if state.closed {
            return;
        }

        let now = self.clock.now();
        state.bytes += message.len();
        state.events.push_back((now, message));

        while self.exceeds_limits(state, now) {
            let oldest = state.events.pop_front().map_or(0, |(_, message)| message.len());
            state.bytes -= oldest;
            state.trimmed += 1;
        }
    }

    /// Appends the last message and closes the log. `reserve` takes the bytes from the budget of
    /// kept logs; `lost` makes the error in place of a message that is not kept. Returns whether
    /// the log can be resumed.
    pub(super) fn finish(
        &self,
        message: HeldBytes,
        retention: Retention,
        reserve: impl Fn(usize) -> Option<ReplayReservation>,
        lost: impl FnOnce() -> Bytes,
    ) -> bool {
        let is_kept = {
            let mut state = self.state.lock();
            let bytes = state.bytes + message.as_bytes().len();
            let reservation = (retention == Retention::Kept).then(|| reserve(bytes)).flatten();
            let is_kept = reservation.is_some() || !state.following;

            let last = if reservation.is_some() {
                state.reservation = reservation;
                message.into_uncounted()
            } else if state.following {
                message.into_bytes()
            } else {
                state.make_room(reserve);
                lost()
            };
            self.push(&mut state, last);
            state.close(self.clock.now());

            is_kept
        };

        self.changed.notify_waiters();
        is_kept
    }

    /// Closes the log without a last message.
    pub(super) fn abandon(&self, reserve: impl Fn(usize) -> Option<ReplayReservation>) {
        {
            let mut state = self.state.lock();
            if !state.closed && state.bytes > 0 && !state.following {
                state.make_room(reserve);
            }
            state.close(self.clock.now());
        }
        self.changed.notify_waiters();
    }

    /// Whether the oldest event must be dropped. The newest event is kept regardless of its size,
    /// because it may be the call's result.
    fn exceeds_limits(&self, state: &LogState, now: Timestamp) -> bool {
        let is_old = |(at, _): &(Timestamp, Bytes)| now.since(*at) > self.max_age;

        state.events.len() > 1
            && (state.events.len() > self.max_events
                || state.bytes > self.max_bytes
                || state.events.front().is_some_and(is_old))
    }

    /// Appends a message, unless its change is already announced or the last undelivered message is
    /// identical: a repeated change notification carries no information.
    pub(super) fn append_once(&self, message: Bytes, change: Option<&str>) {
        let is_duplicate = {
            let mut state = self.state.lock();
            if change.is_some() && state.last_change.as_deref() == change {
                return;
            }

            state.last_change = change.map(Into::into);
            let end = state.trimmed + state.events.len() as u64;
            let last = state.events.back().map(|(_, last)| last);
            end > state.delivered && last == Some(&message)
        };

        if !is_duplicate {
            self.append(message);
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().close(self.clock.now());
        self.changed.notify_waiters();
    }

    /// Asks the follower to disconnect. Has no effect without a follower.
    pub(super) fn disconnect(&self, retry: Duration) {
        {
            let mut state = self.state.lock();
            state.disconnect = state.following.then_some(retry);
        }
        self.changed.notify_waiters();
    }

    /// The time of the last use, which is now if the log has a follower or an open writer. The
    /// standalone stream of a session has no such writer.
    pub(super) fn last_used(&self, standalone: bool) -> Timestamp {
        let state = self.state.lock();

        let in_use = state.following || !(standalone || state.closed);
        if in_use { self.clock.now() } else { state.last_used }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// The position before the first undelivered message that is still kept.
    pub(super) fn undelivered(&self) -> u64 {
        let state = self.state.lock();
        state.delivered.max(state.trimmed)
    }

    /// Delivers the events after `position`, existing and future ones.
    pub(super) fn follow(self: &Arc<Self>, position: u64) -> Result<Deliveries, SessionError> {
        let follower = {
            let mut state = self.state.lock();
            let end = state.trimmed + state.events.len() as u64;
            let replay_ends = state.last_used.saturating_add(self.replay);
            let id = EventId { stream: Arc::clone(&self.stream), position }.to_string();

            if position > end || (state.closed && self.clock.now() >= replay_ends) {
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

        // Wakes the previous follower, which finds that it is cut off.
        self.changed.notify_waiters();

        let follower = LogFollower { log: Arc::clone(self), follower };
        let begin = Some((follower, position));
        Ok(stream::unfold(begin, |following| async move {
            let (following, position) = following?;
            let next = following.next(position).await?;

            let continues = matches!(next, Ok(Delivery::Event(_)));
            Some((next, continues.then_some((following, position + 1))))
        })
        .boxed())
    }
}

impl LogState {
    fn close(&mut self, now: Timestamp) {
        self.closed = true;
        self.last_used = now;
    }

    /// Reserves bytes for the kept messages, or drops the messages.
    fn make_room(&mut self, reserve: impl Fn(usize) -> Option<ReplayReservation>) {
        self.reservation = reserve(self.bytes);
        if self.reservation.is_none() {
            self.trimmed += self.events.len() as u64;
            self.bytes = 0;
            self.events.clear();
        }
    }
}

/// A follower of a log.
struct LogFollower {
    log: Arc<Log>,
    follower: u64,
}

impl LogFollower {
    /// Waits for the item after `position`. `None` ends the deliveries.
    async fn next(&self, position: u64) -> Option<Result<Delivery, SessionError>> {
        loop {
            let mut changed = std::pin::pin!(self.log.changed.notified());
            changed.as_mut().enable();

            {
                let mut state = self.log.state.lock();
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

impl Drop for LogFollower {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        if state.follower != self.follower {
            return;
        }

        state.following = false;
        if !state.closed {
            state.last_used = self.log.clock.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_identity::Owner;
    use larder_runtime::{
        clock::ManualClock,
        held::{Counted, Held},
    };

    use super::*;
    use crate::session::budget::ReplayBudget;

    /// Memory of a result, which lives as long as it counts.
    struct Memory(#[allow(dead_code, reason = "it is counted")] Arc<()>);

    impl Counted for Memory {
        fn bytes(&self) -> usize {
            1
        }

        fn shrink(&mut self, _: usize) {}
    }

    #[tokio::test]
    async fn a_last_message_counts_in_one_limit_while_its_follower_has_it() {
        for retention in [Retention::Kept, Retention::NotKept] {
            let limits = SessionLimits::default();
            let budget = ReplayBudget::new(&limits);
            let owner = Owner::new("ana");
            let log = Arc::new(Log::new("s".into(), &limits, Arc::new(ManualClock::new())));
            let mut deliveries = log.follow(0).expect("it begins");

            let counts = Arc::new(());
            let mut held = Held::default();
            held.add(Box::new(Memory(Arc::clone(&counts))));
            let message = HeldBytes::new(Bytes::from_static(b"{}"), held);
            let is_kept = log.finish(
                message,
                retention,
                |bytes| budget.reserve(&owner, bytes),
                || unreachable!("it has a follower"),
            );

            // A kept event counts in the limit of kept events.
            assert_eq!(is_kept, retention == Retention::Kept);
            assert_eq!(Arc::strong_count(&counts), 1 + usize::from(!is_kept));

            let delivered = deliveries.next().await.expect("it is delivered");
            drop((log, deliveries));
            assert_eq!(Arc::strong_count(&counts), 1 + usize::from(!is_kept));
            drop(delivered);
            assert_eq!(Arc::strong_count(&counts), 1);
        }
    }
}
