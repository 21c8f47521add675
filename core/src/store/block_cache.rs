//! A cache of decompressed blocks, of content that was searched, read in part or downloaded
//! twice: such content is often read again soon.
//!
//! The blocks are found by the digest of their content, so they are never out of date,
//! and only by their owner. When the cache is full, the owner with the most bytes loses
//! blocks, first of the content that it has not used for the longest time.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Block, Entry};
use crate::auth::Owner;

/// The default maximum of the cache in bytes, for a server with 1 GiB of memory.
pub const DEFAULT_CACHE_BYTES: usize = 64 << 20;

/// About how many bytes the cache needs for a block beside its content.
const BLOCK_OVERHEAD: usize = 256;

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
    let dropped = CACHE.lock().insert(&entry.owner, &entry.sha256, offset, content);
    // Freeing memory takes longer than everything else here: after the lock.
    drop(dropped);
}

/// Notes a download of the whole content. Returns whether to keep its blocks: content that is
/// downloaded once is not read again, so only the second download fills the cache.
pub(super) fn keeps_download(entry: &Entry) -> bool {
    CACHE.lock().keeps_download(&entry.owner, &entry.sha256, entry.size)
}

struct BlockCache {
    /// The maximum of `bytes`.
    max: usize,
    /// The bytes of all blocks, with their overhead.
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
    bytes: usize,
    contents: HashMap<Arc<str>, CachedContent>,
    /// The contents by their last use.
    by_use: BTreeMap<u64, Arc<str>>,
}

struct CachedContent {
    /// When it was last used, by [`BlockCache::clock`].
    used: u64,
    /// The blocks by their offset in the content.
    blocks: BTreeMap<u64, Bytes>,
}

impl Share {
    /// Notes a use of this content.
    fn touch(&mut self, digest: &str, clock: u64) {
        let Some(content) = self.contents.get_mut(digest) else { return };
        if let Some(digest) = self.by_use.remove(&content.used) {
            content.used = clock;
            self.by_use.insert(clock, digest);
        }
    }

    /// Removes a block of the content that was not used for the longest time, apart
    /// from `except`. The last block goes first: a search starts with the first.
    fn evict(&mut self, except: Option<&str>) -> Option<Bytes> {
        let mut oldest = self.by_use.iter().filter(|(_, digest)| Some(&***digest) != except);
        let (used, digest) = oldest.next().map(|(used, digest)| (*used, Arc::clone(digest)))?;
        let content = self.contents.get_mut(&digest)?;
        let (_, block) = content.blocks.pop_last()?;
        if content.blocks.is_empty() {
            self.contents.remove(&digest);
            self.by_use.remove(&used);
        }
        Some(block)
    }
}

impl BlockCache {
    fn new(max: usize) -> Self {
        let (shares, by_bytes) = (HashMap::new(), BTreeSet::new());
        Self { max, bytes: 0, shares, by_bytes, downloads: VecDeque::new(), clock: 0 }
    }

    fn set_max(&mut self, max: usize) -> Vec<Bytes> {
        self.max = max;
        let mut dropped = Vec::new();
        while self.bytes > self.max
            && let Some((_, owner)) = self.by_bytes.last().cloned()
        {
            dropped.extend(self.evict(&owner, None));
        }
        dropped
    }

    fn get(&mut self, owner: &Owner, digest: &str, offset: u64) -> Option<Bytes> {
        let share = self.shares.get_mut(owner)?;
        let block = share.contents.get(digest)?.blocks.get(&offset)?.clone();
        self.clock += 1;
        share.touch(digest, self.clock);
        Some(block)
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

    /// Adds a block, and returns those that made room for it.
    fn insert(&mut self, owner: &Owner, digest: &str, offset: u64, block: &Bytes) -> Vec<Bytes> {
        let mut dropped = Vec::new();
        let size = block.len() + BLOCK_OVERHEAD;
        if size > self.max || self.get(owner, digest, offset).is_some() {
            return dropped;
        }
        while self.bytes + size > self.max {
            let own = self.shares.get(owner).map_or(0, |share| share.bytes);
            let Some((most, largest)) = self.by_bytes.last().cloned() else { break };
            // A search of content that does not fit keeps its first blocks: otherwise it would
            // drop each block before the next search reads it.
            let evicted = if own + size > most {
                self.evict(owner, Some(digest))
            } else {
                self.evict(&largest, None)
            };
            let Some(evicted) = evicted else { return dropped };
            dropped.push(evicted);
        }
        self.clock += 1;
        let clock = self.clock;
        let share = self.shares.entry(owner.clone()).or_default();
        if !share.contents.contains_key(digest) {
            let digest: Arc<str> = digest.into();
            share.by_use.insert(clock, Arc::clone(&digest));
            let content = CachedContent { used: clock, blocks: BTreeMap::new() };
            share.contents.insert(digest, content);
        }
        share.touch(digest, clock);
        let Some(content) = share.contents.get_mut(digest) else { return dropped };
        content.blocks.insert(offset, block.clone());
        self.resize(owner, size, 0);
        dropped
    }

    fn evict(&mut self, owner: &Owner, except: Option<&str>) -> Option<Bytes> {
        let block = self.shares.get_mut(owner)?.evict(except)?;
        self.resize(owner, 0, block.len() + BLOCK_OVERHEAD);
        Some(block)
    }

    /// Counts the bytes that an owner has gained and lost.
    fn resize(&mut self, owner: &Owner, more: usize, less: usize) {
        let Some(share) = self.shares.get_mut(owner) else { return };
        self.by_bytes.remove(&(share.bytes, owner.clone()));
        share.bytes = share.bytes + more - less;
        self.bytes = self.bytes + more - less;
        if share.bytes > 0 {
            self.by_bytes.insert((share.bytes, owner.clone()));
        } else {
            self.shares.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1_000 - BLOCK_OVERHEAD;

    fn cached(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) -> Vec<u64> {
        let owner = Owner::new(owner);
        (0..blocks).filter(|offset| cache.get(&owner, digest, *offset).is_some()).collect()
    }

    fn add(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) {
        for offset in 0..blocks {
            cache.insert(&Owner::new(owner), digest, offset, &vec![0; BLOCK].into());
            assert!(cache.bytes <= cache.max, "it is bounded");
            let counted: usize = cache.shares.values().map(|share| share.bytes).sum();
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
}
