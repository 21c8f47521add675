//! The limits of one caller, and of all callers together, at the same time. One caller cannot
//! starve the others, and the server cannot be used beyond its memory.

mod fault;
mod limits;
mod permit;

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use larder_oauth::{Identity, Owner};
use larder_runtime::clock::{Clock, Timestamp};
use larder_runtime::rate::Bucket;
use parking_lot::Mutex;

use self::{
    limits::PermitKind,
    permit::{CallerUse, SharedUse, Usage},
};
pub use self::{
    limits::{AdmissionLimits, LimitLevel, LimitReached, Maximums},
    permit::{BodyPermit, Permit, RequestPermit},
};

/// The maximum number of principals that are tracked at once.
const MAX_PRINCIPALS: usize = 100_000;

/// Tracks the usage of principals and enforces the limits. Memory is bounded: inactive
/// principals are removed.
#[derive(Debug)]
pub struct Limits {
    shared: Arc<SharedUse>,
    clock: Arc<dyn Clock>,
    table: Mutex<CallerTable>,
}

#[derive(Debug, Default)]
struct CallerTable {
    callers: HashMap<Owner, Arc<CallerUse>>,
    last_sweep: Option<Timestamp>,
}

impl Limits {
    /// Enforces these limits.
    pub fn new(limits: AdmissionLimits, clock: Arc<dyn Clock>) -> Arc<Self> {
        let limits = ArcSwap::from_pointee(limits);
        let shared = Arc::new(SharedUse { limits, usage: Usage::default() });
        Arc::new(Self { shared, clock, table: Mutex::default() })
    }

    /// Replaces the limits. Existing permits stay valid.
    pub fn set_limits(&self, limits: AdmissionLimits) {
        self.shared.limits.store(Arc::new(limits));
    }

    /// Admits a request, before its body is read.
    ///
    /// # Errors
    /// If the caller sent too many within the window, or too many are handled.
    pub fn request(&self, identity: &Identity) -> Result<RequestPermit, LimitReached> {
        self.request_of(identity.owner())
    }

    /// Admits a request for content of that owner, by anyone with the link.
    ///
    /// # Errors
    /// As [`Limits::request`].
    pub fn request_of(&self, owner: &Owner) -> Result<RequestPermit, LimitReached> {
        let caller = self.caller(owner)?;
        let AdmissionLimits { requests_per_window: requests, window, .. } =
            **self.shared.limits.load();

        if requests > 0 {
            let taken = caller.bucket.lock().take(requests, window, self.clock.now());
            taken.map_err(|retry_after| LimitReached::rate(requests, window, retry_after))?;
        }

        Permit::acquire(Arc::clone(&self.shared), caller, PermitKind::Requests).map(RequestPermit)
    }

    /// Admits a call.
    ///
    /// # Errors
    /// If too many calls run.
    pub fn call(&self, identity: &Identity) -> Result<Permit, LimitReached> {
        Permit::acquire(Arc::clone(&self.shared), self.caller(identity.owner())?, PermitKind::Calls)
    }

    /// Admits a stream.
    ///
    /// # Errors
    /// If too many streams are open.
    pub fn stream(&self, identity: &Identity) -> Result<Permit, LimitReached> {
        Permit::acquire(
            Arc::clone(&self.shared),
            self.caller(identity.owner())?,
            PermitKind::Streams,
        )
    }

    /// Admits the transfer of content of that owner, whoever receives or sends it.
    ///
    /// # Errors
    /// If too much content is transferred.
    pub fn transfer(&self, owner: &Owner) -> Result<Permit, LimitReached> {
        Permit::acquire(Arc::clone(&self.shared), self.caller(owner)?, PermitKind::Transfers)
    }

    fn caller(&self, owner: &Owner) -> Result<Arc<CallerUse>, LimitReached> {
        let mut table = self.table.lock();
        if let Some(caller) = table.callers.get(owner) {
            return Ok(Arc::clone(caller));
        }

        let now = self.clock.now();
        if table.callers.len() >= MAX_PRINCIPALS {
            self.sweep(&mut table, now);
        }
        if table.callers.len() >= MAX_PRINCIPALS {
            return Err(LimitReached {
                message: format!(
                    "At most {MAX_PRINCIPALS} callers can be active within limits.window. Try again later."
                ),
                retry_after: self.shared.limits.load().window,
                level: LimitLevel::Total,
            });
        }

        let requests = self.shared.limits.load().requests_per_window;
        let bucket = Mutex::new(Bucket::full(requests, now));
        let caller = Arc::new(CallerUse { bucket, usage: Usage::default() });
        table.callers.insert(owner.clone(), Arc::clone(&caller));
        Ok(caller)
    }

    /// Removes principals with a full bucket and without permits. Runs at most once a
    /// second, because it visits all principals.
    fn sweep(&self, table: &mut CallerTable, now: Timestamp) {
        if table.last_sweep.is_some_and(|last| now.since(last) < Duration::from_secs(1)) {
            return;
        }

        table.last_sweep = Some(now);
        let AdmissionLimits { requests_per_window, window, .. } = **self.shared.limits.load();
        table.callers.retain(|_, caller| {
            let is_full = requests_per_window == 0 || caller.bucket.lock().is_idle(window, now);
            !is_full || Arc::strong_count(caller) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_oauth::{Grant, Principal};
    use larder_runtime::clock::ManualClock;

    fn caller(name: &str) -> Identity {
        Identity::new(Principal::Static { name: name.into() }, Grant::All, None)
    }

    fn with(change: impl FnOnce(&mut AdmissionLimits)) -> (Arc<Limits>, ManualClock) {
        let clock = ManualClock::new();
        let mut limits = AdmissionLimits::default();
        change(&mut limits);
        (Limits::new(limits, Arc::new(clock.clone())), clock)
    }

    #[test]
    fn requests_come_in_a_burst_or_spread_over_the_window() {
        let (limits, clock) = with(|limits| limits.requests_per_window = 6);
        let a = caller("a");
        let b = caller("b");

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
    fn a_reached_rate_names_the_window_also_below_a_second() {
        for (millis, named) in [(500, "in 0.5 seconds"), (60_000, "in 60 seconds")] {
            let (limits, _) = with(|limits| {
                (limits.requests_per_window, limits.window) = (1, Duration::from_millis(millis));
            });

            limits.request(&caller("a")).unwrap();
            let limited = limits.request(&caller("a")).unwrap_err();
            assert!(limited.message.contains(named), "{limited}");
        }
    }

    #[test]
    fn a_dropped_permit_can_be_acquired_again() {
        let (limits, _) = with(|limits| (limits.caller.calls, limits.caller.streams) = (2, 1));
        let a = caller("a");

        let first = limits.call(&a).unwrap();
        let _second = limits.call(&a).unwrap();
        assert!(limits.call(&a).unwrap_err().message.contains("limits.concurrent_calls"));
        limits.call(&caller("b")).expect("another caller is not affected");

        drop(first);
        limits.call(&a).unwrap();

        let _stream = limits.stream(&a).unwrap();
        assert!(limits.stream(&a).unwrap_err().message.contains("limits.open_streams"));
    }

    #[test]
    fn memory_is_bounded_by_the_active_principals() {
        let (limits, clock) = with(|limits| {
            (limits.requests_per_window, limits.caller.calls) = (6, 1);
        });

        let held = limits.call(&caller("held")).unwrap();
        for n in 1..MAX_PRINCIPALS {
            limits.request(&caller(&n.to_string())).unwrap();
        }

        let limited = limits.request(&caller("new")).unwrap_err();
        assert!(limited.message.contains("limits.window"), "{limited}");

        clock.advance(Duration::from_secs(60));
        limits.request(&caller("new")).unwrap();
        assert_eq!(limits.table.lock().callers.len(), 2);
        assert!(limits.call(&caller("held")).is_err());

        drop(held);
        limits.call(&caller("held")).unwrap();
    }

    #[test]
    fn bodies_are_bounded_for_a_caller_and_for_all() {
        let (limits, _) = with(|limits| {
            (limits.caller.body_bytes, limits.total.body_bytes) = (10, 15);
        });
        let body = |name: &str| limits.request(&caller(name)).unwrap().body(0).unwrap();
        let mut first = body("a");
        let mut second = body("a");
        let mut third = body("b");

        first.grow(6).unwrap();
        second.grow(4).unwrap();

        let limited = second.grow(1).unwrap_err();
        assert_eq!(limited.level, LimitLevel::Caller);
        assert!(limited.message.contains("limits.caller_body_bytes"), "{limited}");

        third.grow(5).expect("another caller has its own");
        let limited = third.grow(1).unwrap_err();
        assert_eq!(limited.level, LimitLevel::Total);
        assert!(limited.message.contains("limits.total_body_bytes"), "{limited}");

        let announced = limits.request(&caller("c")).unwrap().body(1).unwrap_err();
        assert_eq!(announced.level, LimitLevel::Total);

        // Refused bytes are not counted.
        drop(first);
        third.grow(5).unwrap();
        drop((second, third));
        body("c").grow(10).unwrap();
    }

    #[test]
    fn requests_and_calls_are_bounded_for_all_callers_together() {
        let (limits, _) = with(|limits| (limits.total.requests, limits.total.calls) = (1, 1));
        let a = caller("a");
        let b = caller("b");
        let held = (limits.request(&a).unwrap(), limits.call(&a).unwrap());

        let request = limits.request(&b).unwrap_err();
        assert!(request.message.contains("limits.total_requests"), "{request}");
        let call = limits.call(&b).unwrap_err();
        assert!(call.message.contains("limits.total_calls"), "{call}");
        assert_eq!((request.level, call.level), (LimitLevel::Total, LimitLevel::Total));

        drop(held);
        limits.request(&b).unwrap();
        limits.call(&b).unwrap();
    }

    #[test]
    fn no_default_is_unlimited() {
        let AdmissionLimits { requests_per_window, window, caller, total } =
            AdmissionLimits::default();
        assert!(requests_per_window > 0 && !window.is_zero());
        for Maximums { requests, calls, streams, transfers, body_bytes } in [caller, total] {
            assert!(requests > 0 && calls > 0 && streams > 0 && transfers > 0 && body_bytes > 0);
        }
    }
}
