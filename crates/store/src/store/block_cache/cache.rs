//! [`BlockCache`]: the cached items of all owners, and which of them make room for others.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use larder_identity::Owner;

use super::owner_cache::{CachedItem, OwnerCache};
use crate::store::block_filter::BlockFilter;

/// Filters of an owner that take more than this part of the cache make room for blocks.
const MAX_FILTERS_DIVISOR: usize = 2;

/// The number of downloads that are remembered.
pub(super) const MAX_DOWNLOADS: usize = 64;

/// Content that takes more than this part of the cache is not cached when it is downloaded, so that
/// a few large downloads do not displace everything else.
const MAX_DOWNLOAD_DIVISOR: usize = 4;

/// The items of all owners within a maximum of bytes.
pub(super) struct BlockCache {
    /// The maximum of `bytes`.
    pub(super) max: usize,
    /// The bytes of all items, with their overhead.
    pub(super) bytes: usize,

    pub(super) owners: HashMap<Owner, OwnerCache>,
    /// The owners ordered by their bytes, so that the largest one is found quickly.
    pub(super) by_bytes: BTreeSet<(usize, Owner)>,

    /// The owners and digests of the last downloads, the latest one last.
    pub(super) downloads: VecDeque<(Owner, Box<str>)>,
    /// The number of uses so far, which orders the uses.
    clock: u64,
}

impl BlockCache {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            bytes: 0,
            owners: HashMap::new(),
            by_bytes: BTreeSet::new(),
            downloads: VecDeque::new(),
            clock: 0,
        }
    }

    /// Whether the cache keeps anything.
    pub(super) fn is_enabled(&self) -> bool {
        self.max > 0
    }

    pub(super) fn set_max(&mut self, max: usize) -> Vec<CachedItem> {
        self.max = max;

        let mut dropped = Vec::new();
        while self.bytes > self.max
            && let Some((_, owner)) = self.by_bytes.last().cloned()
        {
            dropped.extend(self.change(&owner, OwnerCache::evict));
        }

        dropped
    }

    pub(super) fn get(&mut self, owner: &Owner, digest: &str, offset: u64) -> Option<Bytes> {
        let blocks = &mut self.owners.get_mut(owner)?.blocks;
        let CachedItem::Block(block) = blocks.get(digest, offset)?.clone() else { return None };

        self.clock += 1;
        blocks.touch(digest, self.clock);
        Some(block)
    }

    pub(super) fn filters(&mut self, owner: &Owner, digest: &str) -> Vec<(u64, Arc<BlockFilter>)> {
        let Some(owned) = self.owners.get_mut(owner) else { return Vec::new() };
        let Some(content) = owned.filters.contents.get(digest) else { return Vec::new() };

        let filters = content.items.iter().filter_map(|(offset, item)| match item {
            CachedItem::Filter(filter) => Some((*offset, Arc::clone(filter))),
            CachedItem::Block(_) => None,
        });
        let filters = filters.collect();

        self.clock += 1;
        owned.filters.touch(digest, self.clock);
        filters
    }

    pub(super) fn lacks_filter(&self, owner: &Owner, digest: &str, offset: u64) -> bool {
        let owned = self.owners.get(owner);
        self.is_enabled() && owned.is_none_or(|owned| owned.filters.get(digest, offset).is_none())
    }

    pub(super) fn keeps_download(&mut self, owner: &Owner, digest: &str, size: u64) -> bool {
        if size > (self.max / MAX_DOWNLOAD_DIVISOR) as u64 {
            return false;
        }

        let mut earlier = self.downloads.iter();
        let found = earlier.position(|download| download.0 == *owner && *download.1 == *digest);
        let download = found.and_then(|at| self.downloads.remove(at));
        let is_known = download.is_some();

        if self.downloads.len() == MAX_DOWNLOADS {
            self.downloads.pop_front();
        }
        self.downloads.push_back(download.unwrap_or_else(|| (owner.clone(), digest.into())));
        is_known
    }

    /// Adds an item. Returns the items that made room for it.
    pub(super) fn insert(
        &mut self,
        owner: &Owner,
        digest: &str,
        offset: u64,
        item: CachedItem,
    ) -> Vec<CachedItem> {
        let mut dropped = Vec::new();
        let size = item.bytes();
        let max_filters = self.max / MAX_FILTERS_DIVISOR;

        let owned = self.owners.get_mut(owner);
        if size > self.max
            || owned.is_some_and(|owned| owned.like(&item).get(digest, offset).is_some())
        {
            return dropped;
        }

        while self.bytes + size > self.max {
            let own = self.owners.get(owner).map_or(0, OwnerCache::bytes);
            let Some((most, largest)) = self.by_bytes.last().cloned() else { break };

            let evicted = if own + size > most {
                self.change(owner, |owned| owned.make_room(digest, &item, max_filters))
            } else {
                self.change(&largest, OwnerCache::evict)
            };

            let Some(evicted) = evicted else { return dropped };
            dropped.push(evicted);
        }

        self.clock += 1;
        let clock = self.clock;
        self.change(owner, |owned| owned.like(&item).insert(digest, offset, item, clock));
        dropped
    }

    /// Changes an owner's items, and keeps the sums and the order of the owners in step with it.
    pub(super) fn change<T>(
        &mut self,
        owner: &Owner,
        change: impl FnOnce(&mut OwnerCache) -> T,
    ) -> T {
        let owned = self.owners.entry(owner.clone()).or_default();
        let before = owned.bytes();
        let result = change(owned);
        let after = owned.bytes();

        if after == 0 {
            self.owners.remove(owner);
        }
        self.bytes = self.bytes + after - before;
        self.by_bytes.remove(&(before, owner.clone()));
        if after > 0 {
            self.by_bytes.insert((after, owner.clone()));
        }
        result
    }
}
