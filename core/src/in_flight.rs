//! Gauges of things in progress, for metrics.

/// A guard that counts one on a gauge while it is held.
#[derive(Debug)]
pub struct InFlight(&'static str);

impl InFlight {
    /// Increments the gauge of this name until the guard is dropped.
    pub fn new(name: &'static str) -> Self {
        metrics::gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}
