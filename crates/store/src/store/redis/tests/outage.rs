//! Redis fails, returns with or without its data, or is slow.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_identity::Owner;
use tokio::time::Instant;

use super::{heard, instance, maintained, patiently, read, settings, uri};
use crate::{
    redis::layout::{self, Layout},
    redis::{Redis, RedisSettings, cmd},
    store::blocks::BLOCK_BYTES,
    store::{ChangeKind, Content, Details, Store, StoreError},
    testing::RedisServer,
    testing::store::{Setup, noise},
};

/// An instance with a short time-out.
async fn on(server: &RedisServer) -> Store {
    let settings = RedisSettings { timeout: Duration::from_secs(1), ..settings(server) };
    instance(&settings, &Setup::default()).await
}

async fn create(store: &Store, owner: &Owner, name: &str) -> Result<(), StoreError> {
    store.create(owner, uri(name), "text".into(), Details::default()).await.map(|_| ())
}

/// Asserts that all operations fail within ten seconds because Redis is unavailable.
async fn everything_fails_soon(store: &Store, owner: &Owner) {
    let begin = Instant::now();
    let failures = tokio::join!(
        create(store, owner, "x:2"),
        async { store.get(owner, &uri("x:1")).await.map(|_| ()) },
        async { store.delete(owner, &uri("x:1")).await.map(|_| ()) },
        async { store.list(owner, "", None, 10).await.map(|_| ()) },
        async {
            store.update(owner, uri("x:1"), "new".into(), Details::default()).await.map(|_| ())
        },
    );

    for failure in [failures.0, failures.1, failures.2, failures.3, failures.4] {
        match failure {
            Err(StoreError::Unavailable { backend: "redis", .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
}

/// Waits until writes succeed again.
async fn recovered(store: &Store, owner: &Owner) {
    patiently(async {
        while create(store, owner, "x:recovered").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn resources_survive_a_crash_of_a_durable_redis() {
    let mut server = RedisServer::durable().await;
    let store = on(&server).await;
    let _maintained = maintained(&store);
    let owner = Owner::new("alice");
    create(&store, &owner, "x:1").await.expect("it fits");
    let found = store.get(&owner, &uri("x:1")).await.expect("it is there");

    server.kill();
    everything_fails_soon(&store, &owner).await;
    assert!(found.bytes().await.is_err(), "content that was not read before cannot be read");

    server.restart().await;
    recovered(&store, &owner).await;
    assert_eq!(read(&store, &owner, "x:1").await, "text");
    assert_eq!(found.bytes().await.expect("it is there again"), "text");
}

#[tokio::test]
async fn an_instance_goes_on_after_redis_lost_its_data() {
    let mut server = RedisServer::start().await;
    let store = on(&server).await;
    let _maintained = maintained(&store);
    let owner = Owner::new("alice");
    create(&store, &owner, "x:1").await.expect("it fits");

    let mut changes = store.feed().subscribe(&owner);
    server.restart().await;

    recovered(&store, &owner).await;
    assert!(store.get(&owner, &uri("x:1")).await.is_err_and(|gone| gone.is_not_found()));
    assert_eq!(read(&store, &owner, "x:recovered").await, "text");

    // The feed reports that changes may be missing, and then continues.
    let missed = async { while changes.next().await.is_ok() {} };
    patiently(missed).await;
    create(&store, &owner, "x:2").await.expect("it fits");
    while heard(&mut changes).await != (ChangeKind::Created, "x:2".into()) {}

    // An instance that starts now finds the layout migrated.
    assert_eq!(read(&on(&server).await, &owner, "x:2").await, "text");
}

#[tokio::test]
async fn operations_fail_while_redis_is_paused_and_succeed_afterwards() {
    let server = RedisServer::start().await;
    let store = on(&server).await;
    let owner = Owner::new("alice");
    create(&store, &owner, "x:1").await.expect("it fits");

    server.pause();
    everything_fails_soon(&store, &owner).await;

    server.resume();
    recovered(&store, &owner).await;
    assert_eq!(read(&store, &owner, "x:recovered").await, "text");
}

async fn blobs(redis: &Redis) -> usize {
    let blobs: Vec<String> = redis.query(cmd("KEYS").arg("*:blob:*")).await.expect("it lists");
    blobs.len()
}

/// The sum of the lengths of all content in bytes.
async fn stored(redis: &Redis) -> usize {
    let blobs: Vec<String> = redis.query(cmd("KEYS").arg("*:blob:*")).await.expect("it lists");

    let mut bytes = 0;
    for blob in blobs {
        let len: usize = redis.query(cmd("STRLEN").arg(blob)).await.expect("it answers");
        bytes += len;
    }

    bytes
}

#[tokio::test]
async fn a_commit_without_a_reply_is_complete_or_absent() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    // Loads the script, so that the commit below is sent once.
    create(&store, &owner, "x:0").await.expect("it fits");
    store.delete(&owner, &uri("x:0")).await.expect("it can be deleted");
    let before = blobs(&redis).await;

    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let pieces = stream::iter([Ok(noise(10 * BLOCK_BYTES).into())]);
    let pieces = pieces.chain(stream::once(async {
        ended.await.map_err(std::io::Error::other)?;
        Ok(Bytes::new())
    }));

    let content = Content::byte_stream(pieces);
    let creating = store.create(&owner, uri("x:1"), content, Details::default());
    let pausing = async {
        patiently(async { while blobs(&redis).await == before {} }).await;
        // The last part goes with the commit.
        patiently(async { while stored(&redis).await < 8 * BLOCK_BYTES {} }).await;
        // Now Redis has the content, and only the commit is left.
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.pause();
        end.send(()).expect("the rest is awaited");
    };

    let (created, ()) = tokio::join!(creating, pausing);
    assert!(matches!(created, Err(StoreError::Unavailable { .. })), "{created:?}");
    server.resume();
    recovered(&store, &owner).await;

    // Redis has executed the commit that it received before.
    assert_eq!(read(&store, &owner, "x:1").await.len(), 10 * BLOCK_BYTES);
}

#[tokio::test]
async fn content_whose_start_was_lost_is_refused_and_removed() {
    let mut server = RedisServer::start().await;
    let store = on(&server).await;
    let owner = Owner::new("alice");
    create(&store, &owner, "x:1").await.expect("it fits");

    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let pieces = stream::iter([Ok(noise(8 * BLOCK_BYTES).into())]);
    let pieces = pieces.chain(stream::once(async {
        ended.await.map_err(std::io::Error::other)?;
        Ok(noise(5 * BLOCK_BYTES).into())
    }));

    let content = Content::byte_stream(pieces);
    let creating = store.create(&owner, uri("x:2"), content, Details::default());
    let restarting = async {
        let redis = Redis::open(&settings(&server)).await.expect("it is there");
        patiently(async { while blobs(&redis).await < 2 {} }).await;
        server.restart().await;
        // An upload that was sending at that moment has failed already.
        let _ = end.send(());
    };

    let (created, ()) = tokio::join!(creating, restarting);
    assert!(matches!(created, Err(StoreError::Unavailable { .. })), "{created:?}");
    assert!(store.get(&owner, &uri("x:2")).await.is_err_and(|gone| gone.is_not_found()));
}

#[tokio::test]
async fn redis_without_memory_is_full_and_evicts_nothing() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");
    create(&store, &owner, "x:1").await.expect("it fits");

    let mut limit = cmd("CONFIG");
    redis.query::<()>(limit.arg("SET").arg("maxmemory").arg(1)).await.expect("it can be set");

    // Content that is sent with the commit, before the commit, and in several parts.
    for size in [4, BLOCK_BYTES, 5 * BLOCK_BYTES] {
        let content = Content::from(noise(size));
        let full = store.create(&owner, uri("x:2"), content, Details::default()).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    }

    assert_eq!(read(&store, &owner, "x:1").await, "text");
}

#[tokio::test]
async fn a_newer_layout_is_not_touched() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;
    let owner = Owner::new("alice");

    let shard = redis.keys().shard_of("alice");
    let newer = Layout::current().version() + 1;
    redis.query::<()>(cmd("SET").arg(layout::key(&shard)).arg(newer)).await.expect("it can be set");

    for refused in
        [create(&store, &owner, "x:1").await, store.delete(&owner, &uri("x:1")).await.map(|_| ())]
    {
        match refused {
            Err(StoreError::Unavailable { source, .. }) => {
                assert!(source.to_string().contains("newer"), "{source}");
            }
            other => panic!("{other:?}"),
        }
    }

    let size: u64 = redis.query(&cmd("DBSIZE")).await.expect("it answers");
    assert!(size <= u64::from(crate::redis::SHARDS) + 1, "only content was written: {size}");
}
