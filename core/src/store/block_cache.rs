//! A cache of decompressed blocks, of content that was searched, read in part or downloaded
//! twice: such content is often read again soon. It also keeps the filters of blocks that were
//! searched.
//!
//! Both are found by the digest of their content, so they are never out of date,
//! and only by their owner. When the cache is full, the owner with the most bytes loses
//! blocks, first of the content that it has not used for the longest time, and filters after
//! all blocks, because they are smaller and save more.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Block, Entry, block_filter::BlockFilter};
use crate::auth::Owner;

/// The default maximum of the cache in bytes, for a server with 1 GiB of memory.
pub const DEFAULT_CACHE_BYTES: usize = 64 << 20;

/// About how many bytes the cache needs for an item beside its content.
const ITEM_OVERHEAD: usize = 256;

/// An owner's blocks displace the filters that take more than this part of the cache.
const MAX_FILTERS_DIVISOR: usize = 2;

/// How many downloads are remembered.
const MAX_DOWNLOADS: usize = 64;

/// Content that takes more than this part of the cache is not kept when it is downloaded, so
/// that a few large downloads do not displace everything else.
const MAX_DOWNLOAD_DIVISOR: usize = 4;

static CACHE: LazyLock<Mutex<BlockCache>> =
    LazyLock::new(|| Mutex::new(BlockCache::new(DEFAULT_CACHE_BYTES)));

/// Sets how many bytes the cache of this process holds at most; 0 for no cache.
pub fn set_cache_bytes(max: usize) {
    let dropped = CACHE.lock().set_max(max);
    drop(dropped);
}

/// The content of a block, if it is in the cache.
pub(super) fn get(entry: &Entry, block: &Block) -> Option<Bytes> {
    let found = CACHE.lock().get(&entry.owner, &entry.sha256, block.offset)?;
    // The same content may have been cut into other blocks.
    (found.len() as u64 == block.len).then_some(found)
}

/// Adds the content of a block, if there is room for it.
pub(super) fn insert(entry: &Entry, offset: u64, content: &Bytes) {
    let item = Item::Block(content.clone());
    let dropped = CACHE.lock().insert(&entry.owner, &entry.sha256, offset, item);
    // Freeing memory takes longer than everything else here: after the lock.
    drop(dropped);
}

/// Adds the filter of the block at this offset, unless the cache has it or keeps nothing.
pub(super) fn insert_filter(entry: &Entry, offset: u64, content: &[u8]) {
    if !CACHE.lock().lacks_filter(&entry.owner, &entry.sha256, offset) {
        return;
    }
    let Some(filter) = BlockFilter::new(content) else { return };
    let item = Item::Filter(Arc::new(filter));
    let dropped = CACHE.lock().insert(&entry.owner, &entry.sha256, offset, item);
    drop(dropped);
}

/// The filters of blocks that the cache has, by the offsets of the blocks, in ascending order.
pub(super) fn filters(entry: &Entry) -> Vec<(u64, Arc<BlockFilter>)> {
    CACHE.lock().filters(&entry.owner, &entry.sha256)
}

/// Notes a download of the whole content. Returns whether to keep its blocks: content that is
/// downloaded once is not read again, so only the second download fills the cache.
pub(super) fn keeps_download(entry: &Entry) -> bool {
    CACHE.lock().keeps_download(&entry.owner, &entry.sha256, entry.size)
}

struct BlockCache {
    /// The maximum of `bytes`.
    max: usize,
    /// The bytes of all items, with their overhead.
    bytes: usize,
    shares: HashMap<Owner, Share>,
    /// The owners by their bytes.
    by_bytes: BTreeSet<(usize, Owner)>,
    /// The owners and digests of the last downloads, the latest last.
    downloads: VecDeque<(Owner, Box<str>)>,
    /// The number of uses so far, which orders them.
    clock: u64,
}

/// What an owner has in the cache.
#[derive(Default)]
struct Share {
    blocks: Items,
    filters: Items,
}

/// Items of one kind.
#[derive(Default)]
struct Items {
    bytes: usize,
    contents: HashMap<Arc<str>, CachedContent>,
    /// The contents by their last use.
    by_use: BTreeMap<u64, Arc<str>>,
}

#[derive(Default)]
struct CachedContent {
    /// When it was last used, by [`BlockCache::clock`].
    used: u64,
    /// By the offset of the block in the content.
    items: BTreeMap<u64, Item>,
}

/// What is known of a block.
#[derive(Clone)]
enum Item {
    Block(Bytes),
    Filter(Arc<BlockFilter>),
}

impl Item {
    /// The memory that it takes, with its overhead.
    fn bytes(&self) -> usize {
        let bytes = match self {
            Self::Block(content) => content.len(),
            Self::Filter(filter) => filter.memory_bytes(),
        };
        bytes + ITEM_OVERHEAD
    }
}

impl Share {
    fn bytes(&self) -> usize {
        self.blocks.bytes + self.filters.bytes
    }

    /// The items of the same kind.
    fn like(&mut self, item: &Item) -> &mut Items {
        match item {
            Item::Block(_) => &mut self.blocks,
            Item::Filter(_) => &mut self.filters,
        }
    }

    /// Removes an item to make room for another owner's.
    fn evict(&mut self) -> Option<Item> {
        self.blocks.evict(None).or_else(|| self.filters.evict(None))
    }

    /// Removes an item to make room for `item` of this content. A search of content that does not
    /// fit keeps its first blocks: otherwise it would drop each block before the next search reads
    /// it. Filters displace blocks, and blocks displace filters that take over `max_filters` bytes.
    fn make_room(&mut self, digest: &str, item: &Item, max_filters: usize) -> Option<Item> {
        match item {
            Item::Block(_) if self.filters.bytes > max_filters => self.filters.evict(None),
            Item::Block(_) => self.blocks.evict(Some(digest)),
            Item::Filter(_) => self.blocks.evict(None).or_else(|| self.filters.evict(Some(digest))),
        }
    }
}

impl Items {
    fn get(&self, digest: &str, offset: u64) -> Option<&Item> {
        self.contents.get(digest)?.items.get(&offset)
    }

    /// Notes a use of this content.
    fn touch(&mut self, digest: &str, clock: u64) {
        let Some(content) = self.contents.get_mut(digest) else { return };
        if let Some(digest) = self.by_use.remove(&content.used) {
            content.used = clock;
            self.by_use.insert(clock, digest);
        }
    }

    fn insert(&mut self, digest: &str, offset: u64, item: Item, clock: u64) {
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

    /// Removes an item of the content that was not used for the longest time, apart
    /// from `except`. The last block goes first: a search starts with the first.
    fn evict(&mut self, except: Option<&str>) -> Option<Item> {
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

impl BlockCache {
    fn new(max: usize) -> Self {
        let (shares, by_bytes) = (HashMap::new(), BTreeSet::new());
        Self { max, bytes: 0, shares, by_bytes, downloads: VecDeque::new(), clock: 0 }
    }

    fn set_max(&mut self, max: usize) -> Vec<Item> {
        self.max = max;
        let mut dropped = Vec::new();
        while self.bytes > self.max
            && let Some((_, owner)) = self.by_bytes.last().cloned()
        {
            dropped.extend(self.change(&owner, Share::evict));
        }
        dropped
    }

    fn get(&mut self, owner: &Owner, digest: &str, offset: u64) -> Option<Bytes> {
        let blocks = &mut self.shares.get_mut(owner)?.blocks;
        let Item::Block(block) = blocks.get(digest, offset)?.clone() else { return None };
        self.clock += 1;
        blocks.touch(digest, self.clock);
        Some(block)
    }

    fn filters(&mut self, owner: &Owner, digest: &str) -> Vec<(u64, Arc<BlockFilter>)> {
        let Some(share) = self.shares.get_mut(owner) else { return Vec::new() };
        let Some(content) = share.filters.contents.get(digest) else { return Vec::new() };
        let filters = content.items.iter().filter_map(|(offset, item)| match item {
            Item::Filter(filter) => Some((*offset, Arc::clone(filter))),
            Item::Block(_) => None,
        });
        let filters = filters.collect();
        self.clock += 1;
        share.filters.touch(digest, self.clock);
        filters
    }

    fn lacks_filter(&self, owner: &Owner, digest: &str, offset: u64) -> bool {
        let share = self.shares.get(owner);
        self.max > 0 && share.is_none_or(|share| share.filters.get(digest, offset).is_none())
    }

    fn keeps_download(&mut self, owner: &Owner, digest: &str, size: u64) -> bool {
        if size > (self.max / MAX_DOWNLOAD_DIVISOR) as u64 {
            return false;
        }
        let mut earlier = self.downloads.iter();
        let found = earlier.position(|download| download.0 == *owner && *download.1 == *digest);
        let download = match found {
            Some(at) => self.downloads.remove(at),
            None => None,
        };
        let is_known = download.is_some();
        if self.downloads.len() == MAX_DOWNLOADS {
            self.downloads.pop_front();
        }
        self.downloads.push_back(download.unwrap_or_else(|| (owner.clone(), digest.into())));
        is_known
    }

    /// Adds an item, and returns those that made room for it.
    fn insert(&mut self, owner: &Owner, digest: &str, offset: u64, item: Item) -> Vec<Item> {
        let mut dropped = Vec::new();
        let (size, max_filters) = (item.bytes(), self.max / MAX_FILTERS_DIVISOR);
        let share = self.shares.get_mut(owner);
        if size > self.max
            || share.is_some_and(|share| share.like(&item).get(digest, offset).is_some())
        {
            return dropped;
        }
        while self.bytes + size > self.max {
            let own = self.shares.get(owner).map_or(0, Share::bytes);
            let Some((most, largest)) = self.by_bytes.last().cloned() else { break };
            let evicted = if own + size > most {
                self.change(owner, |share| share.make_room(digest, &item, max_filters))
            } else {
                self.change(&largest, Share::evict)
            };
            let Some(evicted) = evicted else { return dropped };
            dropped.push(evicted);
        }
        self.clock += 1;
        let clock = self.clock;
        self.change(owner, |share| share.like(&item).insert(digest, offset, item, clock));
        dropped
    }

    /// Changes what an owner has, and counts it.
    fn change<T>(&mut self, owner: &Owner, change: impl FnOnce(&mut Share) -> T) -> T {
        let share = self.shares.entry(owner.clone()).or_default();
        let before = share.bytes();
        let result = change(share);
        let after = share.bytes();
        if after == 0 {
            self.shares.remove(owner);
        }
        self.bytes = self.bytes + after - before;
        self.by_bytes.remove(&(before, owner.clone()));
        if after > 0 {
            self.by_bytes.insert((after, owner.clone()));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1_000 - ITEM_OVERHEAD;

    fn cached(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) -> Vec<u64> {
        let owner = Owner::new(owner);
        (0..blocks).filter(|offset| cache.get(&owner, digest, *offset).is_some()).collect()
    }

    fn add(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) {
        for offset in 0..blocks {
            let block = Item::Block(vec![0; BLOCK].into());
            cache.insert(&Owner::new(owner), digest, offset, block);
            assert!(cache.bytes <= cache.max, "it is bounded");
            let counted: usize = cache.shares.values().map(Share::bytes).sum();
            assert_eq!(cache.bytes, counted);
            assert_eq!(cache.by_bytes.len(), cache.shares.len());
        }
    }

    #[test]
    fn content_that_does_not_fit_keeps_its_first_blocks() {
        let mut cache = BlockCache::new(4_000);
        add(&mut cache, "a", "x", 9);
        assert_eq!(cached(&mut cache, "a", "x", 9), [0, 1, 2, 3]);
        add(&mut cache, "a", "x", 9);
        assert_eq!(cached(&mut cache, "a", "x", 9), [0, 1, 2, 3]);
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_makes_room() {
        let mut cache = BlockCache::new(4_000);
        add(&mut cache, "a", "x", 2);
        add(&mut cache, "a", "y", 2);
        assert_eq!(cached(&mut cache, "a", "x", 2), [0, 1]);
        add(&mut cache, "a", "z", 1);
        assert_eq!(cached(&mut cache, "a", "y", 2), [0]);
        assert_eq!(cached(&mut cache, "a", "x", 2), [0, 1]);
        add(&mut cache, "a", "z", 9);
        assert_eq!(cached(&mut cache, "a", "z", 9), [0, 1, 2, 3]);
        assert_eq!(cache.shares.len(), 1);
    }

    #[test]
    fn the_owner_with_the_most_makes_room_for_others_and_shares_nothing() {
        let mut cache = BlockCache::new(6_000);
        add(&mut cache, "a", "x", 9);
        add(&mut cache, "b", "x", 2);
        add(&mut cache, "c", "y", 1);
        assert_eq!(cached(&mut cache, "a", "x", 9), [0, 1, 2]);
        add(&mut cache, "a", "z", 9);
        assert_eq!(cached(&mut cache, "b", "x", 9), [0, 1]);
        assert_eq!(cached(&mut cache, "c", "y", 9), [0]);
        assert!(cached(&mut cache, "d", "x", 9).is_empty());
        assert_eq!(cached(&mut cache, "a", "z", 9), [0, 1, 2]);
    }

    #[test]
    fn the_second_download_of_small_content_is_kept() {
        let mut cache = BlockCache::new(4_000);
        let mut downloads = |owner: &str, digest: String, size, times| -> Vec<bool> {
            let owner = Owner::new(owner);
            (0..times).map(|_| cache.keeps_download(&owner, &digest, size)).collect()
        };
        assert_eq!(downloads("a", "x".into(), 1_000, 3), [false, true, true]);
        assert_eq!(downloads("b", "x".into(), 1_000, 2), [false, true]);
        assert_eq!(downloads("a", "large".into(), 1_001, 2), [false, false]);
        // The oldest ones are forgotten.
        for n in 0..MAX_DOWNLOADS {
            assert_eq!(downloads("a", n.to_string(), 1, 1), [false]);
        }
        assert_eq!(downloads("a", "x".into(), 1_000, 1), [false]);
        assert_eq!(cache.downloads.len(), MAX_DOWNLOADS);
    }

    #[test]
    fn a_smaller_bound_drops_blocks_and_none_keeps_nothing() {
        let mut cache = BlockCache::new(6_000);
        add(&mut cache, "a", "x", 4);
        add(&mut cache, "b", "y", 2);
        cache.set_max(3_000);
        assert_eq!(
            cached(&mut cache, "a", "x", 4).len() + cached(&mut cache, "b", "y", 2).len(),
            3
        );
        cache.set_max(0);
        assert!(cache.shares.is_empty() && cache.bytes == 0);
        add(&mut cache, "a", "x", 4);
        assert!(cache.shares.is_empty());
    }

    #[test]
    fn filters_displace_blocks_and_stay_longer_than_them() {
        let text: Bytes = b"what a block of a log may contain\n".repeat(200).into();
        let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
        let block = Item::Block(text.clone()).bytes();
        let filter_bytes = Item::Filter(Arc::clone(&filter)).bytes();
        let mut cache = BlockCache::new(3 * block);
        let owner = Owner::new("a");
        let insert = |cache: &mut BlockCache, digest, offset, with_filter| {
            cache.insert(&owner, digest, offset, Item::Block(text.clone()));
            if with_filter {
                cache.insert(&owner, digest, offset, Item::Filter(Arc::clone(&filter)));
            }
        };
        let blocks = |cache: &mut BlockCache, digest| -> Vec<u64> {
            (0..9).filter(|offset| cache.get(&owner, digest, *offset).is_some()).collect()
        };
        let filters = |cache: &mut BlockCache, digest| -> Vec<u64> {
            cache.filters(&owner, digest).iter().map(|(offset, _)| *offset).collect()
        };
        for offset in 0..5 {
            insert(&mut cache, "x", offset, true);
        }
        assert_eq!(blocks(&mut cache, "x"), [0, 1]);
        assert_eq!(filters(&mut cache, "x"), [0, 1, 2, 3, 4]);
        assert_eq!(cache.bytes, 2 * block + 5 * filter_bytes);
        assert!(!cache.lacks_filter(&owner, "x", 4) && cache.lacks_filter(&owner, "x", 5));
        for offset in 0..9 {
            insert(&mut cache, "y", offset, false);
        }
        assert_eq!((blocks(&mut cache, "x"), filters(&mut cache, "x").len()), (vec![], 5));
        assert_eq!(blocks(&mut cache, "y"), [0, 1]);
        assert!(cache.filters(&Owner::new("b"), "x").is_empty());
        cache.set_max(3 * filter_bytes);
        assert_eq!(filters(&mut cache, "x"), [0, 1, 2]);
    }

    #[test]
    fn filters_do_not_keep_blocks_out() {
        let text: Bytes = b"what a block of a log may contain\n".repeat(200).into();
        let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
        let filter_bytes = Item::Filter(Arc::clone(&filter)).bytes();
        let mut cache = BlockCache::new(4 * (text.len() + ITEM_OVERHEAD));
        let owner = Owner::new("a");
        for offset in 0..99 {
            cache.insert(&owner, "x", offset, Item::Filter(Arc::clone(&filter)));
        }
        assert!(cache.bytes + filter_bytes > cache.max);
        for offset in 0..9 {
            cache.insert(&owner, "y", offset, Item::Block(text.clone()));
        }
        let blocks = (0..9).filter(|offset| cache.get(&owner, "y", *offset).is_some()).count();
        assert_eq!(blocks, 2);
        let filters = cache.filters(&owner, "x").len() * filter_bytes;
        assert!((cache.max / 4..=cache.max / 2).contains(&filters), "{filters}");
    }

    #[test]
    fn a_filter_has_no_room_in_a_cache_of_filters_that_is_full() {
        let text = b"what a block of a log may contain\n".repeat(200);
        let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
        let filter_bytes = Item::Filter(Arc::clone(&filter)).bytes();
        let mut cache = BlockCache::new(3 * filter_bytes);
        let owner = Owner::new("a");
        for offset in 0..5 {
            cache.insert(&owner, "x", offset, Item::Filter(Arc::clone(&filter)));
        }
        assert_eq!(cache.filters(&owner, "x").len(), 3);
        assert_eq!(cache.bytes, cache.max);
    }
}
