//! A number of things that are there just now, for metrics.

/// InFlight more of them, for as long as it is held.
#[derive(Debug)]
pub(crate) struct InFlight(&'static str);

impl InFlight {
    /// InFlight more on the gauge of that name.
    pub(crate) fn more(name: &'static str) -> Self {
        metrics::gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}
