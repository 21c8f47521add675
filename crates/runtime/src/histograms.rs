//! Histograms that are registered once for each set of labels.

use std::{fmt, hash::Hash};

use metrics::Histogram;
use quick_cache::{Equivalent, sync::Cache};

/// The number of sets of labels that are cached.
const CAPACITY: usize = 4_096;

/// The histograms of one metric, by their labels. The recorder is asked once for each, because it
/// hashes and copies all labels. It has to be installed before the first measurement.
pub struct Histograms<L>(Cache<L, Histogram>);

impl<L: Eq + Hash> Histograms<L> {
    /// The histogram with these labels, if it was registered.
    pub fn known<Q>(&self, labels: &Q) -> Option<Histogram>
    where
        Q: Hash + Equivalent<L> + ?Sized,
    {
        self.0.get(labels)
    }

    /// The histogram with these labels. `register` asks the recorder for it.
    pub fn get<Q>(&self, labels: &Q, register: impl FnOnce() -> (L, Histogram)) -> Histogram
    where
        Q: Hash + Equivalent<L> + ?Sized,
    {
        self.0.get(labels).unwrap_or_else(|| {
            let (labels, histogram) = register();
            self.0.insert(labels, histogram.clone());
            histogram
        })
    }
}

impl<L: Eq + Hash> Default for Histograms<L> {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl<L> fmt::Debug for Histograms<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histograms").finish_non_exhaustive()
    }
}
