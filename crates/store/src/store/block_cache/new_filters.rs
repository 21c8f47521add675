//! [`NewFilters`]: the filters of content that is being written, so that its first search reads
//! only the blocks that may match.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use larder_identity::Owner;

use super::{
    CACHE,
    owner_cache::{CachedItem, OwnerCache},
};
use crate::{store::block_filter::BlockFilter, store::partial::is_hidden};

/// Filters in the block cache, which bounds them. Until the content is committed, they have a key of
/// their own, because the digest is known only at the end. Dropping them removes them.
pub(in crate::store) struct NewFilters {
    owner: Owner,
    key: String,
    /// Whether no filter was added, as for small content.
    is_empty: bool,
}

impl NewFilters {
    /// Filters of the owner's content; `None` if no search would use them.
    pub(in crate::store) fn new(owner: &Owner) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if is_hidden(owner) || !CACHE.lock().is_enabled() {
            return None;
        }

        // A key is not hexadecimal, so it differs from all digests.
        let key = format!("new {}", NEXT.fetch_add(1, Ordering::Relaxed));
        Some(Self { owner: owner.clone(), key, is_empty: true })
    }

    /// Adds the filter of the block at `offset`, if the cache has room for it.
    pub(in crate::store) fn insert(&mut self, offset: u64, filter: BlockFilter) {
        self.is_empty = false;
        let item = CachedItem::Filter(Arc::new(filter));
        let dropped = CACHE.lock().insert(&self.owner, &self.key, offset, item);
        drop(dropped);
    }

    /// Keeps the filters for searches of the content with this digest.
    pub(in crate::store) fn keep(mut self, sha256: &str) {
        if self.is_empty {
            return;
        }

        let rename = |owned: &mut OwnerCache| owned.filters.rename(&self.key, sha256);
        let replaced = CACHE.lock().change(&self.owner, rename);
        drop(replaced);
        self.is_empty = true;
    }
}

impl Drop for NewFilters {
    fn drop(&mut self) {
        if !self.is_empty {
            let removed = CACHE.lock().change(&self.owner, |owned| owned.filters.remove(&self.key));
            drop(removed);
        }
    }
}
