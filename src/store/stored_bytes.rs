//! How much was stored.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Bytes of content that were stored by a [`Store`](super::Store) that counts
/// for it. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct StoredBytes(Arc<AtomicU64>);

impl StoredBytes {
    /// So many until now.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
