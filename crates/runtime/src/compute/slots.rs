//! A semaphore at which owners take turns.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    Busy, ComputeLimits,
    queue::{FairQueue, QueueLimits, QueueTicket},
};

/// The semaphore. Cheap operations under one lock.
pub(super) struct Slots(Arc<Mutex<SlotsState>>);

struct SlotsState {
    /// Free slots; negative while more are taken than a lowered limit allows.
    free: isize,
    total: usize,
    queue: FairQueue<oneshot::Sender<()>>,
}

/// One slot, until it is dropped.
pub struct Slot {
    state: Arc<Mutex<SlotsState>>,
    ticket: QueueTicket,
    /// Whether the caller knows that the slot was granted.
    is_taken: bool,
}

impl Slots {
    pub(super) fn new(limits: &ComputeLimits) -> Self {
        let total = limits.searches;
        let queue = FairQueue::new(queue_limits(limits));
        Self(Arc::new(Mutex::new(SlotsState { free: total.cast_signed(), total, queue })))
    }

    pub(super) fn set_limits(&self, limits: &ComputeLimits) {
        let mut state = self.0.lock();
        state.free += limits.searches.cast_signed() - state.total.cast_signed();
        state.total = limits.searches;
        state.queue.set_limits(queue_limits(limits));
        state.grant();
    }

    /// Waits for a slot. Cancel safe.
    ///
    /// # Errors
    /// Too many callers wait.
    pub(super) async fn acquire(&self, owner: &str) -> Result<Slot, Busy> {
        let (sender, granted) = oneshot::channel();
        let mut slot = {
            let mut state = self.0.lock();
            let ticket = state.queue.push(owner, sender)?;
            state.grant();
            Slot { state: Arc::clone(&self.0), ticket, is_taken: false }
        };
        // The sender is dropped only with the slot.
        let _ = granted.await;
        slot.is_taken = true;
        Ok(slot)
    }
}

fn queue_limits(limits: &ComputeLimits) -> QueueLimits {
    QueueLimits {
        running_per_owner: limits.searches.div_ceil(2),
        waiting_per_owner: limits.queued_per_owner,
        waiting: limits.queued,
    }
}

impl SlotsState {
    /// Grants free slots to those who wait, as their turns come.
    fn grant(&mut self) {
        while self.free > 0
            && let Some((_, sender)) = self.queue.pop()
        {
            self.free -= 1;
            // A caller that no longer waits returns its slot when that is dropped.
            let _ = sender.send(());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if self.is_taken || state.queue.cancel(&self.ticket).is_none() {
            state.free += 1;
            state.queue.finished(&self.ticket.owner);
        }
        state.grant();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn one_owner_gets_half_and_what_is_dropped_is_free_again() {
        let slots = Slots::new(&ComputeLimits { searches: 4, ..ComputeLimits::default() });
        let now = |owner: &str| slots.acquire(owner).now_or_never().map(Result::unwrap);
        let first = now("a").unwrap();
        let second = now("a").unwrap();
        // The job of `a` waits, and leaves without a trace.
        assert!(now("a").is_none());
        let mut third = Box::pin(slots.acquire("a"));
        assert!((&mut third).now_or_never().is_none());
        let other = now("b");
        assert!(other.is_some());
        drop(first);
        assert!((&mut third).now_or_never().is_some(), "the one that waited has the slot");
        drop((second, other, third));
        assert_eq!(slots.0.lock().free, 4);
        assert!(now("b").is_some());
    }
}
