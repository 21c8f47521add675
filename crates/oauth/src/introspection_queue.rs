//! Bounds the requests to an introspection endpoint: anybody can invent tokens, and each
//! costs the issuer a request.

use std::{net::IpAddr, time::Duration};

use larder_runtime::clock::Timestamp;
use quick_cache::sync::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::IntrospectionLimits;

/// The window in which tokens that are not active are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// How many addresses are tracked.
const ADDRESSES: usize = 10_000;

/// No more requests are accepted now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

#[derive(Debug)]
pub(super) struct Queue {
    running: Semaphore,
    waiting: Semaphore,
    /// For addresses that sent many tokens that are not active.
    suspects: Semaphore,
    max_failures: u32,
    /// The beginning of a window and the failures in it.
    failures: Cache<IpAddr, (Timestamp, u32)>,
}

/// One request, until dropped.
pub(super) struct RequestSlot<'a> {
    _running: SemaphorePermit<'a>,
    _suspect: Option<SemaphorePermit<'a>>,
}

impl Queue {
    pub(super) fn new(limits: IntrospectionLimits) -> Self {
        let IntrospectionLimits { concurrent, waiting, failures_per_minute } = limits;
        Self {
            running: Semaphore::new(concurrent.min(Semaphore::MAX_PERMITS)),
            waiting: Semaphore::new(waiting.min(Semaphore::MAX_PERMITS)),
            suspects: Semaphore::new((concurrent / 8).clamp(1, Semaphore::MAX_PERMITS)),
            max_failures: failures_per_minute,
            failures: Cache::new(ADDRESSES),
        }
    }

    /// Waits for a slot. An address that sent too many tokens that are not active does not
    /// wait and gets a small share, because a proxy may have the same address.
    ///
    /// # Errors
    /// There are too many requests.
    pub(super) async fn enter(
        &self,
        peer: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<RequestSlot<'_>, Busy> {
        if peer.is_some_and(|peer| self.is_suspect(peer, now)) {
            let suspect = self.suspects.try_acquire().map_err(|_| Busy)?;
            let running = self.running.try_acquire().map_err(|_| Busy)?;
            return Ok(RequestSlot { _running: running, _suspect: Some(suspect) });
        }

        let running = match self.running.try_acquire() {
            Ok(running) => running,
            Err(_) => {
                let _waiting = self.waiting.try_acquire().map_err(|_| Busy)?;
                self.running.acquire().await.map_err(|_| Busy)?
            }
        };

        Ok(RequestSlot { _running: running, _suspect: None })
    }

    /// Counts a token that is not active.
    pub(super) fn failed(&self, peer: IpAddr, now: Timestamp) {
        let (begun, failures) = self.in_window(peer, now).unwrap_or((now, 0));
        self.failures.insert(peer, (begun, failures.saturating_add(1)));
    }

    fn is_suspect(&self, peer: IpAddr, now: Timestamp) -> bool {
        self.in_window(peer, now).is_some_and(|(_, failures)| failures >= self.max_failures)
    }

    fn in_window(&self, peer: IpAddr, now: Timestamp) -> Option<(Timestamp, u32)> {
        self.failures.get(&peer).filter(|(begun, _)| now.since(*begun) < WINDOW)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn more_than_the_waiting_ones_are_refused() {
        let limits = IntrospectionLimits { concurrent: 1, waiting: 1, failures_per_minute: 1 };
        let queue = Queue::new(limits);
        let now = Timestamp::from_millis(0);

        let running = queue.enter(None, now).await.unwrap();
        let mut waits = Box::pin(queue.enter(None, now));
        assert!((&mut waits).now_or_never().is_none());
        assert_eq!(queue.enter(None, now).now_or_never().unwrap().err(), Some(Busy));

        drop(running);
        waits.await.unwrap();
        queue.enter(None, now).now_or_never().unwrap().unwrap();
    }

    #[tokio::test]
    async fn an_address_with_bad_tokens_leaves_room_for_others() {
        let limits = IntrospectionLimits { concurrent: 8, waiting: 8, failures_per_minute: 2 };
        let queue = Queue::new(limits);
        let bad = IpAddr::from([10, 0, 0, 1]);
        let good = IpAddr::from([10, 0, 0, 2]);
        let now = Timestamp::from_millis(0);

        queue.failed(bad, now);
        let first = queue.enter(Some(bad), now).await.unwrap();
        queue.failed(bad, now);
        let second = queue.enter(Some(bad), now).await.unwrap();
        assert_eq!(queue.enter(Some(bad), now).await.err(), Some(Busy));
        queue.enter(Some(good), now).await.unwrap();

        drop((first, second));
        queue.enter(Some(bad), now).await.unwrap();

        let later = now.saturating_add(WINDOW);
        let all = [queue.enter(Some(bad), later).await, queue.enter(Some(bad), later).await];
        assert!(all.iter().all(Result::is_ok));
    }
}
