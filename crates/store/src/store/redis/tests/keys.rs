//! The keys in Redis, and their lives.

use std::time::Duration;

use futures_util::stream;
use larder_identity::Owner;
use larder_runtime::random::Random;

use super::{lasting, maintained, on, patiently, settings, uri};
use crate::{
    redis::layout::{self, Layout},
    redis::{Redis, cmd},
    store::blocks::BLOCK_BYTES,
    store::{Content, Details, StoreError},
    testing::RedisServer,
    testing::store::noise,
};

/// All keys except the layout versions, with their remaining milliseconds.
pub(super) async fn keys(redis: &Redis) -> Vec<(String, i64)> {
    let keys: Vec<String> = redis.query(cmd("KEYS").arg("*")).await.expect("it lists them");

    let mut lives = Vec::new();
    for key in keys.into_iter().filter(|key| !key.ends_with(":layout")) {
        let life: i64 = redis.query(cmd("PTTL").arg(&key)).await.expect("it answers");
        lives.push((key, life));
    }
    lives
}

#[tokio::test]
async fn keys_have_the_resources_expiry_and_vanish_with_no_instance_running() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("a:{b}");
    store.create(&owner, uri("x:1"), "text".into(), lasting(3000)).await.expect("it fits");

    let of_the_resource = |(key, _): &&(String, i64)| {
        key.contains(":blob:") || key.contains(":entry:a%3A%7Bb%7D:x:1")
    };

    let all = keys(&redis).await;
    let own: Vec<_> = all.iter().filter(of_the_resource).collect();
    assert_eq!(own.len(), 2, "{all:?}");
    for (key, life) in own {
        assert!((1..=3000).contains(life), "{key} lives {life}");
    }

    for (key, life) in &all {
        assert!((1..=63_000).contains(life), "{key} lives {life}");
        assert!(key.starts_with("larder:{") && key.matches('{').count() == 1, "{key}");
    }

    drop(store);
    patiently(async {
        while keys(&redis).await.iter().any(|key| of_the_resource(&key)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    let all = keys(&redis).await;
    assert!(all.iter().all(|(_, life)| (0..=60_000).contains(life)), "{all:?}");
}

#[tokio::test]
async fn no_key_remains_where_an_instance_runs() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let _maintained = maintained(&store);

    for n in 0..50 {
        let owner = Owner::new(format!("owner {}", n % 5));
        let name = uri(&format!("x:{n}"));
        store.create(&owner, name, "text".into(), lasting(200 + n)).await.expect("it fits");
    }

    patiently(async {
        while !keys(&redis).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn deleting_leaves_only_content_for_its_grace_period() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");
    store.create(&owner, uri("x:1"), "text".into(), Details::default()).await.expect("it fits");
    store.delete(&owner, &uri("x:1")).await.expect("it can be deleted");

    // Deleted content counts until the end of its grace period.
    for (key, life) in keys(&redis).await {
        let longest = match key.split(':').nth(2) {
            Some("blob") => 60_000,
            Some("kept" | "sizes") => 120_000,
            _ => panic!("{key} is left"),
        };
        assert!((1..=longest).contains(&life), "{key} lives {life}");
    }
}

#[tokio::test]
async fn content_of_an_upload_has_an_expiry_and_is_removed_at_once_when_dropped() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    let halfway = async {
        let pieces = stream::iter([Ok(noise(5 * BLOCK_BYTES).into())]);
        let content =
            Content::byte_stream(futures_util::StreamExt::chain(pieces, stream::pending()));
        store.create(&owner, uri("x:1"), content, Details::default()).await
    };
    let arriving = async {
        loop {
            let keys = keys(&redis).await;
            if keys.iter().any(|(key, _)| key.contains(":blob:")) {
                assert!(keys.iter().all(|(_, life)| *life > 0), "{keys:?}");
                return;
            }
        }
    };

    tokio::select! {
        _ = halfway => panic!("the rest is missing"),
        () = patiently(arriving) => {}
    }
    patiently(async { while !keys(&redis).await.is_empty() {} }).await;
}

#[tokio::test]
async fn a_damaged_entry_affects_that_resource_only() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");
    for name in ["x:1", "x:2"] {
        store.create(&owner, uri(name), "text".into(), Details::default()).await.expect("it fits");
    }

    let key = redis.keys().shard_of("alice").key_with("entry", "alice", "x:1");
    redis.query::<()>(cmd("HSET").arg(key).arg("meta").arg("{")).await.expect("it can be set");
    let damaged = store.get(&owner, &uri("x:1")).await.map(|found| found.entry);
    assert!(matches!(damaged, Err(StoreError::Corrupt { .. })), "{damaged:?}");

    assert_eq!(super::read(&store, &owner, "x:2").await, "text");
    let page = store.list(&owner, "", None, 10).await.expect("the list still works");
    assert_eq!(page.entries.iter().map(|e| e.uri.as_str()).collect::<Vec<_>>(), ["x:2"]);

    store.create(&owner, uri("x:1"), "anew".into(), Details::default()).await.expect("it fits");
    assert_eq!(super::read(&store, &owner, "x:1").await, "anew");
}

#[tokio::test]
async fn a_damaged_earlier_revision_hides_no_other() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");
    for text in ["first", "second", "third"] {
        store.create(&owner, uri("x:1"), text.into(), Details::default()).await.expect("it fits");
    }

    let shard = redis.keys().shard_of("alice");
    let key = super::super::entry::earlier_key(&shard, &owner, "x:1", 1);
    redis.query::<()>(cmd("HSET").arg(key).arg("meta").arg("{")).await.expect("it can be set");

    let revisions = store.revisions(&owner, &uri("x:1")).await.expect("the others are readable");
    let numbers: Vec<_> = revisions.iter().map(|found| found.entry.revision).collect();
    assert_eq!(numbers, [2, 3]);
}

#[tokio::test]
async fn content_from_before_compression_is_read_after_the_migration() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    let content = noise(2 * BLOCK_BYTES + 5);
    store.create(&owner, uri("x:1"), content.clone().into(), Details::default()).await.expect("ok");

    // The first layout has no stored lengths in the table.
    let shard = redis.keys().shard_of("alice");
    let entry = super::super::entry::key(&shard, &owner, "x:1");
    let table: Vec<u8> =
        redis.query(cmd("HGET").arg(&entry).arg("blocks")).await.expect("it has a table");
    let old: Vec<u8> = table.chunks(16).flat_map(|b| [&b[..4], &b[8..]].concat()).collect();
    assert_eq!(old.len(), 3 * 12);

    let mut set = cmd("HSET");
    redis.query::<()>(set.arg(&entry).arg("blocks").arg(&old)).await.expect("it is set");
    for shard in redis.keys().shards() {
        let mut set = cmd("SET");
        redis.query::<()>(set.arg(layout::key(&shard)).arg(1)).await.expect("it is set");
    }

    let done = Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    assert_eq!(done[0].number, 2);
    assert!(super::read(&store, &owner, "x:1").await == content, "the content differs");
}
