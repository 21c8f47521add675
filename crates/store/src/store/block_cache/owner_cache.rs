//! [`OwnerCache`]: the cached items of one owner.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;

use crate::store::block_filter::BlockFilter;

/// The approximate bytes that the cache needs for an item beside its content.
pub(super) const ITEM_OVERHEAD: usize = 256;

/// The cached items of one owner.
#[derive(Default)]
pub(super) struct OwnerCache {
    pub(super) blocks: CachedItems,
    pub(super) filters: CachedItems,
}

/// Items of one kind, either blocks or filters.
#[derive(Default)]
pub(super) struct CachedItems {
    pub(super) bytes: usize,
    pub(super) contents: HashMap<Arc<str>, CachedContent>,

    /// The contents by their last use.
    by_use: BTreeMap<u64, Arc<str>>,
}

/// The items of one content.
#[derive(Default)]
pub(super) struct CachedContent {
    /// The time of the last use, by [`BlockCache::clock`].
    used: u64,
    /// The items by the offset of their block in the content.
    pub(super) items: BTreeMap<u64, CachedItem>,
}

/// A block, or the filter of a block.
#[derive(Clone)]
pub(super) enum CachedItem {
    Block(Bytes),
    Filter(Arc<BlockFilter>),
}

impl CachedItem {
    /// The memory that the item takes, with its overhead.
    pub(super) fn bytes(&self) -> usize {
        let bytes = match self {
            Self::Block(content) => content.len(),
            Self::Filter(filter) => filter.memory_bytes(),
        };

        bytes + ITEM_OVERHEAD
    }
}

impl OwnerCache {
    pub(super) fn bytes(&self) -> usize {
        self.blocks.bytes + self.filters.bytes
    }

    /// The items of the same kind as `item`.
    pub(super) fn like(&mut self, item: &CachedItem) -> &mut CachedItems {
        match item {
            CachedItem::Block(_) => &mut self.blocks,
            CachedItem::Filter(_) => &mut self.filters,
        }
    }

    /// Removes an item to make room for another owner.
    pub(super) fn evict(&mut self) -> Option<CachedItem> {
        self.blocks.evict(None).or_else(|| self.filters.evict(None))
    }

    /// Removes an item to make room for `item` of the content `digest`. A search of content that
    /// does not fit keeps its first blocks: otherwise it would drop each block before the next
    /// search reads it. Filters displace blocks, and blocks displace filters that take over
    /// `max_filters` bytes.
    pub(super) fn make_room(
        &mut self,
        digest: &str,
        item: &CachedItem,
        max_filters: usize,
    ) -> Option<CachedItem> {
        match item {
            CachedItem::Block(_) if self.filters.bytes > max_filters => self.filters.evict(None),
            CachedItem::Block(_) => self.blocks.evict(Some(digest)),
            CachedItem::Filter(_) => {
                self.blocks.evict(None).or_else(|| self.filters.evict(Some(digest)))
            }
        }
    }
}

impl CachedContent {
    pub(super) fn bytes(&self) -> usize {
        self.items.values().map(CachedItem::bytes).sum()
    }
}

impl CachedItems {
    pub(super) fn get(&self, digest: &str, offset: u64) -> Option<&CachedItem> {
        self.contents.get(digest)?.items.get(&offset)
    }

    /// Notes a use of the content.
    pub(super) fn touch(&mut self, digest: &str, clock: u64) {
        let Some(content) = self.contents.get_mut(digest) else { return };

        if let Some(digest) = self.by_use.remove(&content.used) {
            content.used = clock;
            self.by_use.insert(clock, digest);
        }
    }

    pub(super) fn insert(&mut self, digest: &str, offset: u64, item: CachedItem, clock: u64) {
        if !self.contents.contains_key(digest) {
            let digest: Arc<str> = digest.into();
            self.by_use.insert(clock, Arc::clone(&digest));
            let content = CachedContent { used: clock, ..CachedContent::default() };
            self.contents.insert(digest, content);
        }

        self.touch(digest, clock);

        self.bytes += item.bytes();
        if let Some(content) = self.contents.get_mut(digest) {
            content.items.insert(offset, item);
        }
    }

    pub(super) fn remove(&mut self, digest: &str) -> Option<CachedContent> {
        let content = self.contents.remove(digest)?;
        self.by_use.remove(&content.used);
        self.bytes -= content.bytes();
        Some(content)
    }

    /// Moves the items from the key `from` to `to`. Returns the items that `to` had.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<CachedContent> {
        let content = self.remove(from)?;
        let replaced = self.remove(to);

        let to: Arc<str> = to.into();
        self.bytes += content.bytes();
        self.by_use.insert(content.used, Arc::clone(&to));
        self.contents.insert(to, content);
        replaced
    }

    /// Removes an item of the content that was not used for the longest time, except content with
    /// the digest `except`. The last block goes first, because a search starts with the first.
    pub(super) fn evict(&mut self, except: Option<&str>) -> Option<CachedItem> {
        let mut oldest = self.by_use.iter().filter(|(_, digest)| Some(&***digest) != except);
        let (used, digest) = oldest.next().map(|(used, digest)| (*used, Arc::clone(digest)))?;

        let content = self.contents.get_mut(&digest)?;
        let (_, item) = content.items.pop_last()?;

        if content.items.is_empty() {
            self.contents.remove(&digest);
            self.by_use.remove(&used);
        }

        self.bytes -= item.bytes();
        Some(item)
    }
}
