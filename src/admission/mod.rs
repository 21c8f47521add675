//! Limits per principal, so that one caller cannot starve the others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use crate::{
    auth::{Identity, Owner},
    clock::{Clock, Timestamp},
};

/// The maximum number of principals that are tracked at once.
const MAX_PRINCIPALS: usize = 100_000;

/// The limits of one principal. Zero means unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalLimits {
    /// Requests per window. They may come in a burst.
    pub requests: u32,
    /// The length of the window.
    pub window: Duration,
    /// Concurrent calls.
    pub calls: usize,
    /// Open streams for change notifications.
    pub streams: usize,
}

impl Default for PrincipalLimits {
    /// Unlimited requests, 10,000 concurrent calls, 100,000 streams.
    fn default() -> Self {
        Self { requests: 0, window: Duration::from_secs(60), calls: 10_000, streams: 100_000 }
    }
}

/// A principal reached a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitReached {
    /// Names the setting of the limit.
    pub message: String,
    /// The delay before a retry.
    pub retry_after: Duration,
}

/// Tracks the usage of principals and enforces their limits. Memory is bounded:
/// inactive principals are removed.
#[derive(Debug)]
pub struct Limits {
    current: ArcSwap<PrincipalLimits>,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    principals: HashMap<Owner, Arc<Usage>>,
    last_sweep: Option<Timestamp>,
}

#[derive(Debug)]
struct Usage {
    bucket: Mutex<Bucket>,
    calls: AtomicUsize,
    streams: AtomicUsize,
}

/// A token bucket that starts full and refills over the window.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    updated: Timestamp,
}

/// A guard that counts one call or one stream while it is held.
#[derive(Debug)]
pub struct Permit(Option<(Arc<Usage>, Counter)>);

type Counter = fn(&Usage) -> &AtomicUsize;

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((usage, counter)) = &self.0 {
            counter(usage).fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Limits {
    /// Enforces these limits.
    pub fn new(limits: PrincipalLimits, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { current: ArcSwap::from_pointee(limits), clock, table: Mutex::default() })
    }

    /// Replaces the limits. Existing permits stay valid.
    pub fn set_limits(&self, limits: PrincipalLimits) {
        self.current.store(Arc::new(limits));
    }

    fn current(&self) -> Guard<Arc<PrincipalLimits>> {
        self.current.load()
    }

    /// Admits a request.
    ///
    /// # Errors
    /// If the caller sent too many within the window.
    pub fn request(&self, identity: &Identity) -> Result<(), LimitReached> {
        let PrincipalLimits { requests, window, .. } = **self.current.load();
        if requests == 0 {
            return Ok(());
        }
        let usage = self.usage(identity)?;
        let mut bucket = usage.bucket.lock();
        let now = self.clock.now();
        let rate = f64::from(requests) / window.as_secs_f64();
        bucket.refill(now, rate, requests);
        if bucket.tokens < 1.0 {
            return Err(LimitReached {
                message: format!(
                    "At most {requests} requests in {} seconds are accepted from one caller (limits.requests_per_window).",
                    window.as_secs()
                ),
                retry_after: Duration::from_secs_f64((1.0 - bucket.tokens) / rate),
            });
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    /// Admits a call.
    ///
    /// # Errors
    /// If too many calls of the caller run.
    pub fn call(&self, identity: &Identity) -> Result<Permit, LimitReached> {
        self.permit(identity, self.current().calls, |usage| &usage.calls, |max| {
            format!("At most {max} calls of one caller run at the same time (limits.concurrent_calls). Wait for one to end.")
        })
    }

    /// Admits a stream.
    ///
    /// # Errors
    /// If too many streams of the caller are open.
    pub fn stream(&self, identity: &Identity) -> Result<Permit, LimitReached> {
        self.permit(identity, self.current().streams, |usage| &usage.streams, |max| {
            format!("At most {max} streams of one caller are open at the same time (limits.open_streams). Close one.")
        })
    }

    fn permit(
        &self,
        identity: &Identity,
        max: usize,
        counter: Counter,
        message: impl FnOnce(usize) -> String,
    ) -> Result<Permit, LimitReached> {
        if max == 0 {
            return Ok(Permit(None));
        }
        let usage = self.usage(identity)?;
        if counter(&usage).fetch_add(1, Ordering::AcqRel) >= max {
            counter(&usage).fetch_sub(1, Ordering::AcqRel);
            return Err(LimitReached {
                message: message(max),
                retry_after: Duration::from_secs(1),
            });
        }
        Ok(Permit(Some((usage, counter))))
    }

    fn usage(&self, identity: &Identity) -> Result<Arc<Usage>, LimitReached> {
        let mut table = self.table.lock();
        if let Some(usage) = table.principals.get(identity.owner()) {
            return Ok(Arc::clone(usage));
        }
        let now = self.clock.now();
        if table.principals.len() >= MAX_PRINCIPALS {
            self.sweep(&mut table, now);
        }
        if table.principals.len() >= MAX_PRINCIPALS {
            return Err(LimitReached {
                message: "Too many callers are active. Retry later.".into(),
                retry_after: self.current().window,
            });
        }
        let usage = Arc::new(Usage {
            bucket: Mutex::new(Bucket { tokens: f64::from(self.current().requests), updated: now }),
            calls: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        });
        table.principals.insert(identity.owner().clone(), Arc::clone(&usage));
        Ok(usage)
    }

    /// Removes principals with a full bucket and without permits. Runs at most
    /// once a second, because it visits all principals.
    fn sweep(&self, table: &mut Table, now: Timestamp) {
        if table.last_sweep.is_some_and(|last| now.since(last) < Duration::from_secs(1)) {
            return;
        }
        table.last_sweep = Some(now);
        let window = self.current().window;
        table.principals.retain(|_, usage| {
            let bucket = usage.bucket.lock();
            let is_full = self.current().requests == 0 || now.since(bucket.updated) >= window;
            !is_full || Arc::strong_count(usage) > 1
        });
    }
}

impl Bucket {
    fn refill(&mut self, now: Timestamp, rate: f64, max: u32) {
        let elapsed = now.since(self.updated).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(f64::from(max));
        self.updated = now;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{
        auth::{Grant, Principal},
        clock::ManualClock,
    };

    fn caller(name: &str) -> Identity {
        Identity::new(Principal::Static { name: name.into() }, Grant::All, None)
    }

    fn limits(requests: u32, calls: usize) -> (Arc<Limits>, ManualClock) {
        let clock = ManualClock::new();
        let window = Duration::from_secs(60);
        let limits = PrincipalLimits { requests, window, calls, streams: 1 };
        (Limits::new(limits, Arc::new(clock.clone())), clock)
    }

    #[test]
    fn requests_come_in_a_burst_or_spread_over_the_window() {
        let (limits, clock) = limits(6, 0);
        let (a, b) = (caller("a"), caller("b"));
        for _ in 0..6 {
            limits.request(&a).unwrap();
        }
        let limited = limits.request(&a).unwrap_err();
        assert!(limited.message.contains("limits.requests_per_window"));
        assert_eq!(limited.retry_after, Duration::from_secs(10));
        limits.request(&b).expect("another caller is not affected");
        clock.advance(Duration::from_secs(10));
        limits.request(&a).unwrap();
        assert!(limits.request(&a).is_err());
        clock.advance(Duration::from_secs(3600));
        for _ in 0..6 {
            limits.request(&a).unwrap();
        }
        assert!(limits.request(&a).is_err());
    }

    #[test]
    fn a_dropped_permit_can_be_acquired_again() {
        let (limits, _) = limits(0, 2);
        let a = caller("a");
        let (first, _second) = (limits.call(&a).unwrap(), limits.call(&a).unwrap());
        assert!(limits.call(&a).unwrap_err().message.contains("limits.concurrent_calls"));
        limits.call(&caller("b")).expect("another caller is not affected");
        drop(first);
        limits.call(&a).unwrap();
        let _stream = limits.stream(&a).unwrap();
        assert!(limits.stream(&a).unwrap_err().message.contains("limits.open_streams"));
    }

    #[test]
    fn memory_is_bounded_by_the_active_principals() {
        let (limits, clock) = limits(6, 1);
        let held = limits.call(&caller("held")).unwrap();
        for n in 1..MAX_PRINCIPALS {
            limits.request(&caller(&n.to_string())).unwrap();
        }
        assert!(limits.request(&caller("new")).is_err());
        clock.advance(Duration::from_secs(60));
        limits.request(&caller("new")).unwrap();
        assert_eq!(limits.table.lock().principals.len(), 2);
        assert!(limits.call(&caller("held")).is_err());
        drop(held);
        limits.call(&caller("held")).unwrap();
    }
}
