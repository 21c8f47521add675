//! When to look which shard for something that has expired.

use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::Instant};

use super::Inner;
use crate::redis::SHARDS;

/// How long nobody looks where nothing is expected: others may have written
/// while this replica heard nothing.
const ROUND: Duration = Duration::from_secs(30);

/// How long to wait where looking has failed.
const RETRY: Duration = Duration::from_secs(1);

/// For each shard the time at which to look. What is written is heard of by
/// all replicas, so nobody has to ask; the first who looks tells what has
/// expired, and the others find nothing left.
#[derive(Debug)]
pub(super) struct Agenda {
    due: Mutex<Vec<Instant>>,
    sooner: Notify,
}

impl Agenda {
    pub(super) fn new() -> Self {
        let due = Mutex::new(vec![Instant::now(); usize::from(SHARDS)]);
        Self { due, sooner: Notify::new() }
    }

    /// Something there expires after that time.
    pub(super) fn expect(&self, shard: u8, life: Option<Duration>) {
        let Some(at) = life.and_then(|life| Instant::now().checked_add(life)) else { return };
        let mut due = self.due();
        let soonest = due.iter().min().copied();
        due[usize::from(shard)] = at.min(due[usize::from(shard)]);
        if soonest.is_none_or(|soonest| at < soonest) {
            self.sooner.notify_one();
        }
    }

    /// Something may have been missed.
    pub(super) fn look_everywhere(&self) {
        self.due().fill(Instant::now());
        self.sooner.notify_one();
    }

    fn next(&self) -> Instant {
        self.due().iter().min().copied().unwrap_or_else(Instant::now)
    }

    /// Accepts the shards whose time has come; they are looked at again later in
    /// any case.
    fn take(&self) -> Vec<usize> {
        let now = Instant::now();
        let mut due = self.due();
        let ripe: Vec<usize> = (0..due.len()).filter(|shard| due[*shard] <= now).collect();
        for shard in &ripe {
            due[*shard] = now + ROUND;
        }
        ripe
    }

    fn due(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.due.lock()
    }
}

impl Inner {
    /// Tells what expires, when it does, until dropped.
    pub(super) async fn sweep_on_time(&self) {
        let shards: Vec<_> = self.redis.keys().shards().collect();
        loop {
            let sooner = self.agenda.sooner.notified();
            tokio::select! {
                () = tokio::time::sleep_until(self.agenda.next()) => {}
                () = sooner => continue,
            }
            let ripe = self.agenda.take().into_iter().map(|shard| &shards[shard]);
            join_all(ripe.map(|shard| async move {
                let next = self.sweep(shard).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, "what has expired cannot be told now");
                    Some(RETRY)
                });
                self.agenda.expect(shard.number(), next);
            }))
            .await;
        }
    }
}
