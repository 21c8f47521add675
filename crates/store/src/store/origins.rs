//! [`Origins`]: the upstream servers that content comes from.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;

/// The origins of everything that a call has read, which its writes get. Cheap to
/// clone; all clones are one set.
#[derive(Debug, Clone, Default)]
pub struct Origins(Arc<Mutex<BTreeSet<Arc<str>>>>);

impl Origins {
    /// The names, in order.
    pub fn names(&self) -> Arc<[Arc<str>]> {
        self.0.lock().iter().cloned().collect()
    }

    /// Adds names.
    pub fn add(&self, names: impl IntoIterator<Item = Arc<str>>) {
        self.0.lock().extend(names);
    }
}

/// Whether there is no origin; for `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_empty(origins: &Arc<[Arc<str>]>) -> bool {
    origins.is_empty()
}

/// The names of both lists, in order.
pub(super) fn union(left: &Arc<[Arc<str>]>, right: &Arc<[Arc<str>]>) -> Arc<[Arc<str>]> {
    if right.is_empty() {
        return Arc::clone(left);
    }
    left.iter().chain(right.iter()).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}
