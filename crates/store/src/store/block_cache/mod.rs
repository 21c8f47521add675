//! A cache of decompressed blocks, of content that was searched, read in part or downloaded
//! twice: such content is often read again soon. The cache also has the filters of blocks that
//! were written or searched.
//!
//! The key of an item is its owner and the digest of its content, so no item is out of date and
//! none is shared between owners. When the cache is full, the owner with the most bytes loses
//! blocks, first of the content that it has not used for the longest time, and filters after all
//! blocks, because filters are smaller and save more.

mod cache;
mod new_filters;
mod owner_cache;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parking_lot::Mutex;

pub(super) use self::new_filters::NewFilters;
use self::{cache::BlockCache, owner_cache::CachedItem};
use super::{Block, Entry, block_filter::BlockFilter};

/// The default maximum of the cache in bytes, for a server with 1 GiB of memory.
pub const DEFAULT_CACHE_BYTES: usize = 64 << 20;

static CACHE: LazyLock<Mutex<BlockCache>> =
    LazyLock::new(|| Mutex::new(BlockCache::new(DEFAULT_CACHE_BYTES)));

/// Sets the most bytes that the cache of this process holds; 0 for no cache.
pub fn set_cache_bytes(max: usize) {
    let dropped = CACHE.lock().set_max(max);
    drop(dropped);
}

/// The content of a block, if it is in the cache.
pub(super) fn get(entry: &Entry, block: &Block) -> Option<Bytes> {
    let found = CACHE.lock().get(&entry.owner, &entry.sha256, block.offset)?;

    // Equal content may have been cut into other blocks.
    (found.len() as u64 == block.len).then_some(found)
}

/// Adds the content of a block, if there is room for it.
pub(super) fn insert(entry: &Entry, offset: u64, content: &Bytes) {
    let item = CachedItem::Block(content.clone());
    let dropped = CACHE.lock().insert(&entry.owner, &entry.sha256, offset, item);

    // Freeing memory takes longer than the insertion, so it is done without the lock.
    drop(dropped);
}

/// Adds the filter of the block at `offset`, unless the cache is off or has the filter.
pub(super) fn insert_filter(entry: &Entry, offset: u64, content: &[u8]) {
    if !CACHE.lock().lacks_filter(&entry.owner, &entry.sha256, offset) {
        return;
    }

    let Some(filter) = BlockFilter::new(content) else { return };
    let item = CachedItem::Filter(Arc::new(filter));
    let dropped = CACHE.lock().insert(&entry.owner, &entry.sha256, offset, item);
    drop(dropped);
}

/// The cached filters with the offsets of their blocks, in ascending order.
pub(super) fn filters(entry: &Entry) -> Vec<(u64, Arc<BlockFilter>)> {
    CACHE.lock().filters(&entry.owner, &entry.sha256)
}

/// Notes a download of the whole content. Returns whether to keep its blocks: most content is
/// downloaded once, so only the second download fills the cache.
pub(super) fn keeps_download(entry: &Entry) -> bool {
    CACHE.lock().keeps_download(&entry.owner, &entry.sha256, entry.size)
}
