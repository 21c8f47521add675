//! Gauges of things in progress, for metrics.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// A guard that counts one on a gauge while it is held.
#[derive(Debug)]
pub struct InFlight {
    gauge: &'static str,
    count: Option<InFlightCount>,
}

impl InFlight {
    /// Increments the gauge of this name until the guard is dropped.
    pub fn new(gauge: &'static str) -> Self {
        Self::with(gauge, None)
    }

    /// Increments the gauge as [`new`](Self::new) does, and a count that this process can read.
    pub fn counted(gauge: &'static str, count: &InFlightCount) -> Self {
        count.0.fetch_add(1, Relaxed);
        Self::with(gauge, Some(count.clone()))
    }

    fn with(gauge: &'static str, count: Option<InFlightCount>) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self { gauge, count }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(self.gauge).decrement(1.0);
        if let Some(InFlightCount(count)) = &self.count {
            count.fetch_sub(1, Relaxed);
        }
    }
}

/// The number of held guards that [`InFlight::counted`] made.
#[derive(Debug, Clone, Default)]
pub struct InFlightCount(Arc<AtomicU64>);

impl InFlightCount {
    /// The current number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
