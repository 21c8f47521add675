//! Counters of use, and the permits that they count.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use larder_runtime::rate::Bucket;
use parking_lot::Mutex;

use super::limits::{AdmissionLimits, LimitLevel, LimitReached, PermitKind};

/// How much is in use.
#[derive(Debug, Default)]
pub(super) struct Usage {
    requests: AtomicUsize,
    calls: AtomicUsize,
    streams: AtomicUsize,
    transfers: AtomicUsize,
    body_bytes: AtomicUsize,
}

impl Usage {
    fn counter(&self, kind: PermitKind) -> &AtomicUsize {
        match kind {
            PermitKind::Requests => &self.requests,
            PermitKind::Calls => &self.calls,
            PermitKind::Streams => &self.streams,
            PermitKind::Transfers => &self.transfers,
            PermitKind::BodyBytes => &self.body_bytes,
        }
    }

    /// Adds if the sum is at most `max`. Zero means unlimited.
    fn try_add(&self, kind: PermitKind, amount: usize, max: usize) -> bool {
        let sum = |used: usize| {
            let sum = used.saturating_add(amount);
            (max == 0 || sum <= max).then_some(sum)
        };
        self.counter(kind).fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok()
    }

    fn subtract(&self, kind: PermitKind, amount: usize) {
        self.counter(kind).fetch_sub(amount, Ordering::AcqRel);
    }

    fn fits(&self, kind: PermitKind, amount: usize, max: usize) -> bool {
        let used = self.counter(kind).load(Ordering::Acquire);
        max == 0 || used.saturating_add(amount) <= max
    }
}

/// One caller.
#[derive(Debug)]
pub(super) struct CallerUse {
    pub(super) bucket: Mutex<Bucket>,
    pub(super) usage: Usage,
}

/// The limits, and what all callers use together.
#[derive(Debug)]
pub(super) struct SharedUse {
    pub(super) limits: ArcSwap<AdmissionLimits>,
    pub(super) usage: Usage,
}

/// Counts what a caller uses, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<SharedUse>,
    caller: Arc<CallerUse>,
    kind: PermitKind,
    amount: usize,
}

impl Permit {
    pub(super) fn acquire(
        shared: Arc<SharedUse>,
        caller: Arc<CallerUse>,
        kind: PermitKind,
    ) -> Result<Self, LimitReached> {
        let mut permit = Self { shared, caller, kind, amount: 0 };
        permit.add(1)?;
        Ok(permit)
    }

    fn add(&mut self, amount: usize) -> Result<(), LimitReached> {
        let limits = self.shared.limits.load();
        let reached = |level, max| Err(LimitReached::new(self.kind, level, max));

        let max = limits.caller.of(self.kind);
        if !self.caller.usage.try_add(self.kind, amount, max) {
            return reached(LimitLevel::Caller, max);
        }

        let max = limits.total.of(self.kind);
        if !self.shared.usage.try_add(self.kind, amount, max) {
            self.caller.usage.subtract(self.kind, amount);
            return reached(LimitLevel::Total, max);
        }

        self.amount += amount;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.caller.usage.subtract(self.kind, self.amount);
        self.shared.usage.subtract(self.kind, self.amount);
    }
}

/// The permit of a request, from authentication to the head of the response.
#[derive(Debug)]
pub struct RequestPermit(pub(super) Permit);

impl RequestPermit {
    /// A permit for the request's body, which grows as the body arrives.
    ///
    /// # Errors
    /// If there is no room for a body of the announced length now. The length is not
    /// reserved, because a caller that announces much and sends nothing must not refuse
    /// others.
    pub fn body(&self, announced: usize) -> Result<BodyPermit, LimitReached> {
        let Permit { shared, caller, .. } = &self.0;
        let limits = shared.limits.load();
        let kind = PermitKind::BodyBytes;

        for (usage, level, maximums) in [
            (&caller.usage, LimitLevel::Caller, &limits.caller),
            (&shared.usage, LimitLevel::Total, &limits.total),
        ] {
            let max = maximums.of(kind);
            if !usage.fits(kind, announced, max) {
                return Err(LimitReached::new(kind, level, max));
            }
        }

        let shared = Arc::clone(shared);
        let caller = Arc::clone(caller);
        Ok(BodyPermit(Permit { shared, caller, kind, amount: 0 }))
    }
}

/// Counts the received bytes of a body, until it is dropped together with the body.
#[derive(Debug)]
pub struct BodyPermit(Permit);

impl BodyPermit {
    /// Counts received bytes.
    ///
    /// # Errors
    /// If the bodies of the caller, or of all callers, are too many bytes.
    pub fn grow(&mut self, bytes: usize) -> Result<(), LimitReached> {
        self.0.add(bytes)
    }
}
