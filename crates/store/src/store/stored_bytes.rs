//! [`StoredBytes`]: a counter of stored bytes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts the bytes of content that a [`Store`](super::Store) stores; see
/// [`Store::counting`](super::Store::counting). Cheap to clone; all clones share
/// one count.
#[derive(Debug, Clone, Default)]
pub struct StoredBytes(Arc<AtomicU64>);

impl StoredBytes {
    /// The bytes stored so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
