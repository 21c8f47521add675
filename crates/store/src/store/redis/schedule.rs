//! [`SweepSchedule`]: when to sweep each shard for expired resources.

use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::Instant};

use super::RedisState;
use crate::redis::SHARDS;

/// The maximum time between sweeps of a shard: other instances may have written
/// while this instance received no events.
const INTERVAL: Duration = Duration::from_secs(30);

/// The pause after a failed sweep.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The time of the next sweep of each shard. All instances receive an event for
/// each write, so none polls. The first instance to sweep publishes the expiries;
/// the others find nothing left.
#[derive(Debug)]
pub(super) struct SweepSchedule {
    due: Mutex<Vec<Instant>>,
    earlier: Notify,
}

impl SweepSchedule {
    pub(super) fn new() -> Self {
        let due = Mutex::new(vec![Instant::now(); usize::from(SHARDS)]);
        Self { due, earlier: Notify::new() }
    }

    /// Makes the shard's next sweep no later than `delay` from now.
    pub(super) fn wake_after(&self, shard: u8, delay: Option<Duration>) {
        let Some(at) = delay.and_then(|delay| Instant::now().checked_add(delay)) else { return };

        let mut due = self.due();
        let soonest = due.iter().min().copied();
        due[usize::from(shard)] = at.min(due[usize::from(shard)]);

        if soonest.is_none_or(|soonest| at < soonest) {
            self.earlier.notify_one();
        }
    }

    /// Makes all shards due now, because events may have been missed.
    pub(super) fn wake_all(&self) {
        self.due().fill(Instant::now());
        self.earlier.notify_one();
    }

    fn next(&self) -> Instant {
        self.due().iter().min().copied().unwrap_or_else(Instant::now)
    }

    /// The shards that are due. Sets their next sweep to one interval from now.
    fn take(&self) -> Vec<usize> {
        let now = Instant::now();
        let mut due = self.due();
        let shards: Vec<usize> = (0..due.len()).filter(|shard| due[*shard] <= now).collect();

        for shard in &shards {
            due[*shard] = now + INTERVAL;
        }

        shards
    }

    fn due(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.due.lock()
    }
}

impl RedisState {
    /// Publishes expiries when they happen. Runs until dropped.
    pub(super) async fn sweep_on_time(&self) {
        let shards: Vec<_> = self.redis.keys().shards().collect();
        loop {
            let earlier = self.schedule.earlier.notified();
            tokio::select! {
                () = tokio::time::sleep_until(self.schedule.next()) => {}
                () = earlier => continue,
            }

            let due = self.schedule.take().into_iter().map(|shard| &shards[shard]);
            join_all(due.map(|shard| async move {
                let next = self.sweep(shard).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, "cannot publish expiries; trying again");
                    Some(RETRY_DELAY)
                });
                self.schedule.wake_after(shard.number(), next);
            }))
            .await;
        }
    }
}
