//! [`MessageBudget`]: bounds the memory for messages of all upstreams together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The size up to which messages do not count. Calls are limited, so these are, too.
pub(super) const FREE_BYTES: usize = 16 << 10;
/// About how much memory a small JSON value takes once it is parsed.
pub(super) const VALUE_BYTES: usize = 96;

/// How long a message waits for others to end. It may hold room itself, so it must not wait
/// for long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much is taken at a time while a message grows.
const STEP: usize = 64 << 10;
/// Enough for two messages of the default size, in a server with 1 GiB.
const DEFAULT_BYTES: usize = 128 << 20;

/// The memory for messages that are received or in use.
pub(super) struct MessageBudget {
    max: AtomicUsize,
    used: Mutex<usize>,
    freed: Notify,
}

/// The share of one message. Dropping it gives it back.
#[derive(Default)]
pub(super) struct Charge {
    /// `None` if it does not count.
    budget: Option<Arc<MessageBudget>>,
    bytes: usize,
}

/// The other messages take too much.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Default for MessageBudget {
    fn default() -> Self {
        let max = AtomicUsize::new(DEFAULT_BYTES);
        Self { max, used: Mutex::default(), freed: Notify::new() }
    }
}

impl MessageBudget {
    /// Changes the limit for what is received from now on.
    pub(super) fn set_max(&self, bytes: usize) {
        self.max.store(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// The limit.
    pub(super) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// The share of a message that begins.
    pub(super) fn charge(self: &Arc<Self>) -> Charge {
        Charge { budget: Some(Arc::clone(self)), bytes: 0 }
    }

    /// Takes more, if there is room. A message that is larger than the whole budget gets all of
    /// it.
    fn try_grow(&self, held: &mut usize, bytes: usize) -> bool {
        let max = self.max();
        let wanted = bytes.min(max);
        let mut used = self.used.lock();
        let more = wanted.saturating_sub(*held);
        let fits = more == 0 || *used + more <= max;
        if fits {
            *used += more;
            *held += more;
        }
        fits
    }
}

impl Charge {
    /// Takes room for a message of so many bytes. Waits for other messages, but not for long.
    ///
    /// # Errors
    /// [`NoRoom`]. It keeps what it has.
    pub(super) async fn cover(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let Some(budget) = &self.budget else { return Ok(()) };
        if bytes <= FREE_BYTES || bytes <= self.bytes {
            return Ok(());
        }
        let (wanted, held) = (bytes.next_multiple_of(STEP), &mut self.bytes);
        let room = async {
            loop {
                let mut freed = std::pin::pin!(budget.freed.notified());
                // Before the look, so that nothing is missed.
                freed.as_mut().enable();
                if budget.try_grow(held, wanted) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(PATIENCE, room).await.map_err(|_| NoRoom)
    }

    /// Takes over the share of another part of the message.
    pub(super) fn add(&mut self, mut other: Self) {
        if self.budget.is_none() {
            self.budget = other.budget.take();
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Whether it takes anything.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.as_ref().filter(|_| self.bytes > 0) {
            *budget.used.lock() -= self.bytes;
            budget.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(max: usize) -> Arc<MessageBudget> {
        let budget = Arc::new(MessageBudget::default());
        budget.set_max(max);
        budget
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_another_and_fails_if_that_stays() {
        let budget = of(4 * STEP);
        let (mut first, mut second) = (budget.charge(), budget.charge());
        first.cover(3 * STEP).await.unwrap();
        second.cover(STEP).await.unwrap();
        assert!(second.cover(2 * STEP).await.is_err());
        let waiting = tokio::spawn(async move {
            second.cover(2 * STEP).await.unwrap();
            second
        });
        tokio::task::yield_now().await;
        drop(first);
        let mut second = waiting.await.unwrap();
        // One that is larger than the budget is received alone.
        second.cover(9 * STEP).await.unwrap();
        assert_eq!(*budget.used.lock(), 4 * STEP);
        assert!(budget.charge().cover(FREE_BYTES).await.is_ok(), "small ones do not count");
        let mut joined = budget.charge();
        joined.add(second);
        drop(joined);
        assert_eq!(*budget.used.lock(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_greater_limit_lets_a_message_go_on() {
        let budget = of(STEP);
        let mut first = budget.charge();
        first.cover(STEP).await.unwrap();
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.charge().cover(STEP).await.is_ok() }
        });
        tokio::task::yield_now().await;
        budget.set_max(2 * STEP);
        assert!(waiting.await.unwrap());
    }
}
