//! Tests of which items the cache keeps.

use std::sync::Arc;

use bytes::Bytes;
use larder_identity::Owner;

use super::{
    cache::{BlockCache, MAX_DOWNLOADS},
    owner_cache::{CachedItem, ITEM_OVERHEAD, OwnerCache},
};
use crate::store::block_filter::BlockFilter;

const BLOCK: usize = 1_000 - ITEM_OVERHEAD;

fn cached(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) -> Vec<u64> {
    let owner = Owner::new(owner);
    (0..blocks).filter(|offset| cache.get(&owner, digest, *offset).is_some()).collect()
}

fn add(cache: &mut BlockCache, owner: &str, digest: &str, blocks: u64) {
    for offset in 0..blocks {
        let block = CachedItem::Block(vec![0; BLOCK].into());
        cache.insert(&Owner::new(owner), digest, offset, block);

        assert!(cache.bytes <= cache.max, "it is bounded");
        let counted: usize = cache.owners.values().map(OwnerCache::bytes).sum();
        assert_eq!(cache.bytes, counted);
        assert_eq!(cache.by_bytes.len(), cache.owners.len());
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
fn content_that_was_not_used_for_the_longest_time_makes_room() {
    let mut cache = BlockCache::new(4_000);
    add(&mut cache, "a", "x", 2);
    add(&mut cache, "a", "y", 2);
    assert_eq!(cached(&mut cache, "a", "x", 2), [0, 1]);

    add(&mut cache, "a", "z", 1);
    assert_eq!(cached(&mut cache, "a", "y", 2), [0]);
    assert_eq!(cached(&mut cache, "a", "x", 2), [0, 1]);

    add(&mut cache, "a", "z", 9);
    assert_eq!(cached(&mut cache, "a", "z", 9), [0, 1, 2, 3]);
    assert_eq!(cache.owners.len(), 1);
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
    assert_eq!(cached(&mut cache, "a", "x", 4).len() + cached(&mut cache, "b", "y", 2).len(), 3);

    cache.set_max(0);
    assert!(cache.owners.is_empty() && cache.bytes == 0);

    add(&mut cache, "a", "x", 4);
    assert!(cache.owners.is_empty());
}

#[test]
fn filters_displace_blocks_and_stay_longer_than_them() {
    let text: Bytes = b"what a block of a log may contain\n".repeat(200).into();
    let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
    let block = CachedItem::Block(text.clone()).bytes();
    let filter_bytes = CachedItem::Filter(Arc::clone(&filter)).bytes();
    let mut cache = BlockCache::new(3 * block);
    let owner = Owner::new("a");

    let insert = |cache: &mut BlockCache, digest, offset, with_filter| {
        cache.insert(&owner, digest, offset, CachedItem::Block(text.clone()));
        if with_filter {
            cache.insert(&owner, digest, offset, CachedItem::Filter(Arc::clone(&filter)));
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
fn filters_of_new_content_get_its_digest_in_place_of_earlier_ones() {
    let text: Bytes = b"what a block of a log may contain\n".repeat(200).into();
    let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
    let mut cache = BlockCache::new(1 << 20);
    let owner = Owner::new("a");

    for (key, offset) in [("x", 0), ("x", 7), ("new", 0), ("new", 1)] {
        cache.insert(&owner, key, offset, CachedItem::Filter(Arc::clone(&filter)));
    }

    let before = cache.bytes;
    let bytes = CachedItem::Filter(Arc::clone(&filter)).bytes();

    let replaced = cache.change(&owner, |owned| owned.filters.rename("new", "x"));
    assert_eq!(replaced.map(|content| content.items.len()), Some(2));
    assert_eq!(cache.bytes, before - 2 * bytes);

    let offsets = |cache: &mut BlockCache, key| -> Vec<u64> {
        cache.filters(&owner, key).iter().map(|(offset, _)| *offset).collect()
    };
    assert_eq!(offsets(&mut cache, "x"), [0, 1]);
    assert!(offsets(&mut cache, "new").is_empty());

    assert!(cache.change(&owner, |owned| owned.filters.remove("x")).is_some());
    assert!(cache.owners.is_empty() && cache.by_bytes.is_empty() && cache.bytes == 0);

    assert!(cache.change(&owner, |owned| owned.filters.rename("new", "x")).is_none());
    assert!(cache.owners.is_empty() && cache.by_bytes.is_empty());
}

#[test]
fn filters_do_not_keep_blocks_out() {
    let text: Bytes = b"what a block of a log may contain\n".repeat(200).into();
    let filter = Arc::new(BlockFilter::new(&text).expect("the block is large enough"));
    let filter_bytes = CachedItem::Filter(Arc::clone(&filter)).bytes();
    let mut cache = BlockCache::new(4 * (text.len() + ITEM_OVERHEAD));
    let owner = Owner::new("a");

    for offset in 0..99 {
        cache.insert(&owner, "x", offset, CachedItem::Filter(Arc::clone(&filter)));
    }
    assert!(cache.bytes + filter_bytes > cache.max);
    for offset in 0..9 {
        cache.insert(&owner, "y", offset, CachedItem::Block(text.clone()));
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
    let filter_bytes = CachedItem::Filter(Arc::clone(&filter)).bytes();
    let mut cache = BlockCache::new(3 * filter_bytes);
    let owner = Owner::new("a");

    for offset in 0..5 {
        cache.insert(&owner, "x", offset, CachedItem::Filter(Arc::clone(&filter)));
    }

    assert_eq!(cache.filters(&owner, "x").len(), 3);
    assert_eq!(cache.bytes, cache.max);
}
