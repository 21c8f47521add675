//! The clock as a parameter, so that tests can control the time. Nothing else
//! reads the system clock.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Milliseconds since the Unix epoch. Always UTC, so that neither time zones nor
/// daylight saving time change an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A timestamp from milliseconds since the epoch.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The milliseconds since the epoch.
    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// Adds `span`; at most the largest timestamp.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// RFC 3339 in UTC with seconds: `2026-07-28T12:00:00Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = i64::try_from(self.0).ok().and_then(DateTime::<Utc>::from_timestamp_millis);
        match time {
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => f.write_str("never"),
        }
    }
}

/// A source of the time.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Waits until the deadline; returns at once if it has passed.
    async fn sleep_until(&self, deadline: Timestamp);
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the only reader of the system clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        // The system clock may be set during the sleep, so it is read each minute.
        loop {
            let left = deadline.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_secs(60))).await;
        }
    }
}

/// A clock that moves only by [`advance`](ManualClock::advance), for tests.
///
/// ```
/// use std::time::Duration;
/// use larder_runtime::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now().since(before), Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Manual>>);

#[derive(Debug)]
struct Manual {
    now: Timestamp,
    sleepers: BTreeMap<Timestamp, Vec<oneshot::Sender<()>>>,
}

impl ManualClock {
    /// A clock that starts on 1 January 2026.
    pub fn new() -> Self {
        let now = Timestamp(1_767_225_600_000);
        Self(Arc::new(Mutex::new(Manual { now, sleepers: BTreeMap::new() })))
    }

    /// Advances the time and wakes the tasks whose deadline has passed.
    pub fn advance(&self, span: Duration) {
        let mut manual = self.lock();
        manual.now = manual.now.saturating_add(span);

        let later = Timestamp(manual.now.0.saturating_add(1));
        let waiting = manual.sleepers.split_off(&later);
        for sleeper in std::mem::replace(&mut manual.sleepers, waiting).into_values().flatten() {
            // The sleeper may have been dropped.
            let _ = sleeper.send(());
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Manual> {
        self.0.lock()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        let woken = {
            let mut manual = self.lock();
            if manual.now >= deadline {
                return;
            }

            let (wake, woken) = oneshot::channel();
            manual.sleepers.entry(deadline).or_default().push(wake);
            woken
        };

        // The sender lives until the deadline.
        let _ = woken.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_as_utc() {
        assert_eq!(Timestamp::from_millis(1_767_225_600_000).to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_millis(u64::MAX).to_string(), "never");
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_tasks_at_their_deadline() {
        let clock = ManualClock::new();
        let due = clock.now().saturating_add(Duration::from_secs(5));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(due).await }
        });
        tokio::task::yield_now().await;

        clock.advance(Duration::from_secs(4));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());

        clock.advance(Duration::from_secs(1));
        sleeper.await.expect("woken");
    }
}
