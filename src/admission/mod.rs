//! What one principal may use of the server at once, so that it does not take
//! it from the others.

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

/// How many principals are counted at the same time.
const MOST_PRINCIPALS: usize = 100_000;

/// Bounds for one principal. Zero is no bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalLimits {
    /// Requests within a window, in one go or spread over it.
    pub requests: u32,
    /// The window.
    pub window: Duration,
    /// Calls that run at the same time.
    pub calls: usize,
    /// Streams held open to hear of changes.
    pub streams: usize,
}

impl Default for PrincipalLimits {
    /// Any number of requests, 10,000 calls at once, 100,000 streams.
    fn default() -> Self {
        Self { requests: 0, window: Duration::from_secs(60), calls: 10_000, streams: 100_000 }
    }
}

/// A bound was reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Limited {
    /// Says which setting it is.
    pub message: String,
    /// When trying again makes sense.
    pub retry_after: Duration,
}

/// Counts what principals use. Memory is bounded: who uses nothing and has
/// used little lately is not kept.
#[derive(Debug)]
pub struct Limits {
    bounds: ArcSwap<PrincipalLimits>,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    principals: HashMap<Owner, Arc<Usage>>,
    swept: Option<Timestamp>,
}

#[derive(Debug)]
struct Usage {
    bucket: Mutex<Bucket>,
    calls: AtomicUsize,
    streams: AtomicUsize,
}

/// A token bucket: full at first, filled again over the window.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Timestamp,
}

/// One call, or one stream, while it is held.
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
    /// Those bounds, by that clock.
    pub fn new(limits: PrincipalLimits, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { bounds: ArcSwap::from_pointee(limits), clock, table: Mutex::default() })
    }

    /// Other bounds from now on. What is held stays held.
    pub fn set_bounds(&self, bounds: PrincipalLimits) {
        self.bounds.store(Arc::new(bounds));
    }

    fn bounds(&self) -> Guard<Arc<PrincipalLimits>> {
        self.bounds.load()
    }

    /// Counts a request.
    ///
    /// # Errors
    /// Names the setting.
    pub fn request(&self, identity: &Identity) -> Result<(), Limited> {
        let PrincipalLimits { requests, window, .. } = **self.bounds.load();
        if requests == 0 {
            return Ok(());
        }
        let usage = self.usage(identity)?;
        let mut bucket = usage.bucket.lock();
        let now = self.clock.now();
        let rate = f64::from(requests) / window.as_secs_f64();
        bucket.fill(now, rate, requests);
        if bucket.left < 1.0 {
            return Err(Limited {
                message: format!(
                    "At most {requests} requests in {} seconds are taken from one caller (limits.requests_per_window).",
                    window.as_secs()
                ),
                retry_after: Duration::from_secs_f64((1.0 - bucket.left) / rate),
            });
        }
        bucket.left -= 1.0;
        Ok(())
    }

    /// Begins a call.
    ///
    /// # Errors
    /// Names the setting.
    pub fn call(&self, identity: &Identity) -> Result<Permit, Limited> {
        self.hold(identity, self.bounds().calls, |usage| &usage.calls, |most| {
            format!("At most {most} calls of one caller run at the same time (limits.concurrent_calls). Wait for some to end.")
        })
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// Names the setting.
    pub fn stream(&self, identity: &Identity) -> Result<Permit, Limited> {
        self.hold(identity, self.bounds().streams, |usage| &usage.streams, |most| {
            format!("At most {most} streams of one caller are open at the same time (limits.open_streams). Close some.")
        })
    }

    fn hold(
        &self,
        identity: &Identity,
        most: usize,
        counter: Counter,
        message: impl FnOnce(usize) -> String,
    ) -> Result<Permit, Limited> {
        if most == 0 {
            return Ok(Permit(None));
        }
        let usage = self.usage(identity)?;
        if counter(&usage).fetch_add(1, Ordering::AcqRel) >= most {
            counter(&usage).fetch_sub(1, Ordering::AcqRel);
            return Err(Limited { message: message(most), retry_after: Duration::from_secs(1) });
        }
        Ok(Permit(Some((usage, counter))))
    }

    fn usage(&self, identity: &Identity) -> Result<Arc<Usage>, Limited> {
        let mut table = self.table.lock();
        if let Some(usage) = table.principals.get(identity.owner()) {
            return Ok(Arc::clone(usage));
        }
        let now = self.clock.now();
        if table.principals.len() >= MOST_PRINCIPALS {
            self.sweep(&mut table, now);
        }
        if table.principals.len() >= MOST_PRINCIPALS {
            return Err(Limited {
                message: "More callers are active than this server counts.".into(),
                retry_after: self.bounds().window,
            });
        }
        let usage = Arc::new(Usage {
            bucket: Mutex::new(Bucket { left: f64::from(self.bounds().requests), at: now }),
            calls: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        });
        table.principals.insert(identity.owner().clone(), Arc::clone(&usage));
        Ok(usage)
    }

    /// Forgets those of whom nothing is to be remembered: a full bucket, and
    /// no permit out. Not more often than once a second, because it looks at all.
    fn sweep(&self, table: &mut Table, now: Timestamp) {
        if table.swept.is_some_and(|at| now.since(at) < Duration::from_secs(1)) {
            return;
        }
        table.swept = Some(now);
        let window = self.bounds().window;
        table.principals.retain(|_, usage| {
            let bucket = usage.bucket.lock();
            let is_full = self.bounds().requests == 0 || now.since(bucket.at) >= window;
            !is_full || Arc::strong_count(usage) > 1
        });
    }
}

impl Bucket {
    fn fill(&mut self, now: Timestamp, rate: f64, most: u32) {
        let since = now.since(self.at).as_secs_f64();
        self.left = (self.left + since * rate).min(f64::from(most));
        self.at = now;
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
    fn requests_come_in_one_go_or_spread_over_the_window() {
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
    fn what_is_given_back_can_be_taken_again() {
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
    fn memory_is_bounded_by_who_is_active() {
        let (limits, clock) = limits(6, 1);
        let held = limits.call(&caller("held")).unwrap();
        for n in 1..MOST_PRINCIPALS {
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
