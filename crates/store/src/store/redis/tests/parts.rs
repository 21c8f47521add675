//! Content of several mebibytes, which has several keys.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;

use super::{instance, lasting, on, patiently, read, settings, uri};
use crate::{
    redis::{Redis, cmd},
    store::blocks::BLOCK_BYTES,
    store::{Content, Details, OwnerQuota, Rewrite, Store, StoreError},
    testing::RedisServer,
    testing::store::{Setup, noise},
};

const MIB: usize = 1 << 20;

/// The lengths of all parts in descending order, and their shortest and longest life in
/// milliseconds.
async fn parts(redis: &Redis) -> (Vec<usize>, i64, i64) {
    let keys: Vec<String> = redis.query(cmd("KEYS").arg("*:blob:*")).await.expect("it lists");
    let mut lengths = Vec::new();
    let mut lives = Vec::new();

    for key in keys {
        lengths.push(redis.query::<usize>(cmd("STRLEN").arg(&key)).await.expect("it answers"));
        lives.push(redis.query::<i64>(cmd("PTTL").arg(&key)).await.expect("it answers"));
    }

    lengths.sort_by(|one, other| other.cmp(one));

    let shortest = lives.iter().min().copied().unwrap_or(0);
    let longest = lives.iter().max().copied().unwrap_or(0);
    (lengths, shortest, longest)
}

/// The bytes that Redis has received.
async fn received(redis: &Redis) -> u64 {
    let stats: String = redis.query(cmd("INFO").arg("stats")).await.expect("it answers");
    let bytes = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
    bytes.and_then(|bytes| bytes.trim().parse().ok()).expect("it counts")
}

#[tokio::test]
async fn redis_copies_unchanged_content_by_itself() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    let content = Bytes::from(noise(20 * MIB + 5));
    let long = lasting(600_000);
    store.create(&owner, uri("x:1"), content.clone().into(), long).await.expect("it fits");

    let before = received(&redis).await;
    let details = Details { ttl: Some(Duration::from_mins(5)), ..Details::default() };
    let rewritten = store.rewrite(&owner, uri("x:1"), Rewrite::default(), details).await;
    assert_eq!(rewritten.expect("it is written").revision, 2);
    let found = store.get(&owner, &uri("x:1")).await.expect("it is there");
    store.copy(&found, &owner, uri("x:2"), lasting(300_000)).await.expect("it fits");
    store.rename(&owner, &uri("x:1"), &uri("x:3"), Details::default()).await.expect("it fits");

    let sent = received(&redis).await - before;
    assert!(sent < 100_000, "{sent} bytes");
    assert!(read(&store, &owner, "x:2").await == content);
    assert!(read(&store, &owner, "x:3").await == content);
    let (lengths, _, longest) = parts(&redis).await;
    assert_eq!(lengths.len(), 4 * 21, "two copies, and both revisions for the grace period");
    assert!(longest <= 300_000, "{longest}");

    // An upload that is dropped leaves no copied part.
    let found = store.get(&owner, &uri("x:2")).await.expect("it is there");
    let mut upload = store.backend.begin(&owner, &uri("x:4"), None).await.expect("it begins");
    assert!(upload.copy(&found).await.expect("it is copied"));
    upload.discard().await;
    assert_eq!(parts(&redis).await.0.len(), 4 * 21);

    // The copied content is gone before its end.
    let mut upload = store.backend.begin(&owner, &uri("x:4"), None).await.expect("it begins");
    server_forgets(&redis).await;
    assert!(upload.copy(&found).await.expect_err("it is gone").is_not_found());

    // Nobody else writes, so that the content is lost rather than contended. Another instance has
    // none of it in its memory.
    let other = on(&server).await;
    let rewritten = other.rewrite(&owner, uri("x:2"), Rewrite::default(), lasting(300_000)).await;
    assert!(rewritten.as_ref().is_err_and(StoreError::is_not_found), "{rewritten:?}");
    let moved = other.rename(&owner, &uri("x:2"), &uri("x:4"), Details::default()).await;
    assert!(moved.as_ref().is_err_and(StoreError::is_not_found), "{moved:?}");
}

/// Removes the last part of all content.
async fn server_forgets(redis: &Redis) {
    let last: Vec<String> = redis.query(cmd("KEYS").arg("*:blob:*.20")).await.expect("it lists");
    redis.query::<u64>(cmd("DEL").arg(last)).await.expect("it answers");
}

async fn range(store: &Store, owner: &Owner, range: std::ops::Range<usize>) -> Bytes {
    let found = store.get(owner, &uri("x:1")).await.expect("it is there");
    let pieces = found.stream_range(range.start as u64..range.end as u64);
    let whole = pieces.try_fold(BytesMut::new(), async |mut whole, piece| {
        whole.extend_from_slice(&piece);
        Ok(whole)
    });

    whole.await.expect("it can be read").freeze()
}

#[tokio::test]
async fn all_parts_are_read_and_expire_together() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    let content = Bytes::from(noise(3 * MIB + 5));
    let long = lasting(600_000);
    store.create(&owner, uri("x:1"), content.clone().into(), long).await.expect("it fits");

    let (lengths, shortest, longest) = parts(&redis).await;
    assert_eq!(lengths, [MIB, MIB, MIB, 5]);
    assert!(shortest > 500_000 && longest <= 600_000, "{shortest} {longest}");
    assert!(read(&store, &owner, "x:1").await == content);
    for part in [MIB - 3..MIB + 3, MIB..2 * MIB, 5..3 * MIB + 1, 3 * MIB..3 * MIB + 5] {
        assert!(range(&store, &owner, part.clone()).await == content[part.clone()], "{part:?}");
    }

    // An update changes when all revisions expire.
    let text = "a line of a log\n".repeat(MIB / 4);
    let short = lasting(300_000);
    store.update(&owner, uri("x:1"), text.clone().into(), short).await.expect("it fits");

    let (lengths, shortest, longest) = parts(&redis).await;
    assert_eq!(lengths.len(), 5, "compressed text needs one");
    assert!(shortest > 200_000 && longest <= 300_000, "{shortest} {longest}");
    assert_eq!(read(&store, &owner, "x:1").await, text);
    let first = store.revision(&owner, &uri("x:1"), Some(1)).await.expect("it is kept");
    assert!(first.bytes().await.expect("it can be read") == content);

    // Deleted content stays for readers that have begun.
    store.delete(&owner, &uri("x:1")).await.expect("it can be deleted");

    let (lengths, shortest, longest) = parts(&redis).await;
    assert_eq!(lengths.len(), 5);
    assert!(shortest > 0 && longest <= 60_000, "{shortest} {longest}");
    assert!(first.bytes().await.expect("it can be read") == content);
}

#[tokio::test]
async fn deleted_content_makes_room_with_all_its_parts() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let quota = OwnerQuota { bytes: 5 << 20, ..OwnerQuota::default() };
    let store = instance(&settings(&server), &Setup { quota, ..Setup::default() }).await;
    let owner = Owner::new("alice");

    let create = async |name, bytes| {
        let content = Content::from(noise(bytes));
        store.create(&owner, uri(name), content, Details::default()).await
    };

    create("x:1", 3 * MIB + 5).await.expect("it fits");
    store.delete(&owner, &uri("x:1")).await.expect("it can be deleted");
    assert_eq!(parts(&redis).await.0.len(), 4);

    create("x:2", 2 * MIB + 7).await.expect("what was deleted makes room");
    assert_eq!(parts(&redis).await.0, [MIB, MIB, 7]);

    // Refused content leaves nothing in Redis.
    create("x:3", 3 * MIB).await.expect_err("it does not fit");

    let unannounced = stream::iter(
        noise(3 * MIB)
            .chunks(BLOCK_BYTES)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect::<Vec<_>>(),
    );
    let unannounced = Content::byte_stream(unannounced);
    let refused = store.create(&owner, uri("x:3"), unannounced, Details::default()).await;
    refused.expect_err("it does not fit");

    patiently(async { while parts(&redis).await.0 != [MIB, MIB, 7] {} }).await;
}

#[tokio::test]
async fn parts_of_a_slow_upload_live_on() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = Arc::new(on(&server).await);
    let owner = Owner::new("alice");

    let (send, pieces) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    let pieces = stream::unfold(pieces, async |mut pieces| {
        let piece = pieces.recv().await?;
        Some((Ok(Bytes::from(piece)), pieces))
    });

    let creating = tokio::spawn({
        let store = Arc::clone(&store);
        let owner = owner.clone();
        let content = Content::byte_stream(pieces.boxed());
        async move { store.create(&owner, uri("x:1"), content, Details::default()).await }
    });

    let content = noise(3 * MIB);
    send.send(content[..2 * MIB + BLOCK_BYTES].to_vec()).expect("it is received");
    patiently(async { while parts(&redis).await.0.len() < 2 {} }).await;

    // The state near the end of the parts' life.
    let keys: Vec<String> = redis.query(cmd("KEYS").arg("*:blob:*")).await.expect("it lists");
    for key in keys {
        let mut expire = cmd("PEXPIRE");
        redis.query::<()>(expire.arg(&key).arg(20_000)).await.expect("it is set");
    }

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(8 * 60)).await;
    tokio::time::resume();

    send.send(content[2 * MIB + BLOCK_BYTES..][..BLOCK_BYTES].to_vec()).expect("it is received");
    patiently(async { while parts(&redis).await.1 <= 20_000 {} }).await;

    send.send(content[2 * MIB + 2 * BLOCK_BYTES..].to_vec()).expect("it is received");
    drop(send);
    creating.await.expect("it ends").expect("it is stored");
    assert!(read(&store, &owner, "x:1").await == content);
}

#[tokio::test]
async fn replaced_content_makes_room_however_often() {
    let server = RedisServer::start().await;
    let quota = OwnerQuota { bytes: 12 << 20, ..OwnerQuota::default() };
    let store = instance(&settings(&server), &Setup { quota, ..Setup::default() }).await;
    let owner = Owner::new("alice");
    let content = Bytes::from(noise(2 * MIB));

    for round in 0..20 {
        let written = store.create(&owner, uri("x:1"), content.clone().into(), Details::default());
        written.await.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

#[tokio::test]
async fn as_many_deleted_resources_as_needed_make_room() {
    let server = RedisServer::start().await;
    let quota = OwnerQuota { bytes: 2 << 20, ..OwnerQuota::default() };
    let store = instance(&settings(&server), &Setup { quota, ..Setup::default() }).await;
    let owner = Owner::new("alice");

    // Each resource counts more than a kilobyte, and stays for a minute after it is deleted.
    let small = stream::iter(0..1_500).map(|n| {
        let store = store.clone();
        let owner = owner.clone();
        let name = uri(&format!("x:{n}"));
        async move {
            let text = Content::from("text");
            store.create(&owner, name.clone(), text, Details::default()).await.expect("it fits");
            store.delete(&owner, &name).await.expect("it can be deleted");
        }
    });
    small.buffer_unordered(50).collect::<Vec<_>>().await;

    let large = Content::from(noise(3 * MIB / 2));
    store.create(&owner, uri("x:large"), large, Details::default()).await.expect("it fits");
    store.delete(&owner, &uri("x:large")).await.expect("it can be deleted");

    // Content of unannounced size gets room, too.
    let pieces = stream::iter([Ok(Bytes::from(noise(3 * MIB / 2)))]);
    let large = Content::byte_stream(pieces);
    store.create(&owner, uri("x:large"), large, Details::default()).await.expect("it fits");
}
