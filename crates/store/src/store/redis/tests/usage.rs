//! The total usage is a counter, not a sum over owners. These tests check that it
//! becomes correct again after expiries that no instance saw.

use larder_identity::Owner;
use larder_runtime::random::Random;

use super::{lasting, on, settings, uri};
use crate::{
    redis::layout::{self, Layout},
    redis::{Redis, cmd},
    store::{Details, Store, Usage},
    testing::RedisServer,
};

/// Creates `x:1` and returns the bytes that it counts.
async fn create(store: &Store, owner: &Owner, bytes: usize, details: Details) -> u64 {
    let created = store.create(owner, uri("x:1"), vec![1; bytes].into(), details).await;
    created.expect("it fits").counted_bytes()
}

async fn used(store: &Store) -> (u64, u64) {
    let Usage { resources, bytes, .. } = store.usage().await.expect("it answers");
    (resources, bytes)
}

/// Two owners whose keys are in one shard.
fn neighbours(redis: &Redis) -> [Owner; 2] {
    let shard = |name: &str| redis.keys().shard_of(name).number();
    let other = (0..u16::MAX).map(|n| format!("bob{n}")).find(|name| shard(name) == shard("alice"));
    [Owner::new("alice"), Owner::new(other.expect("there are many names"))]
}

#[tokio::test]
async fn an_index_that_expired_natively_is_subtracted() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;

    let [alice, bob] = neighbours(&redis);
    let alices = create(&store, &alice, 100, lasting(50)).await;
    let bobs = create(&store, &bob, 10, Details::default()).await;
    assert_eq!(used(&store).await, (2, alices + bobs));

    // The state a minute after the expiry, if no instance has run meanwhile.
    let shard = redis.keys().shard_of(alice.as_str());
    for kind in ["names", "expiries", "sizes"] {
        let mut del = cmd("DEL");
        let deleted: bool =
            redis.query(del.arg(shard.key(kind, alice.as_str()))).await.expect("it answers");
        assert!(deleted, "{kind}");
    }

    let _maintained = super::maintained(&store);
    super::patiently(async {
        while used(&store).await != (1, bobs) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_counter_vanishes_with_the_last_resource_of_the_shard() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;

    let [alice, bob] = neighbours(&redis);
    let key = redis.keys().shard_of(alice.as_str()).single("usage");
    let life = async || {
        let life: i64 = redis.query(cmd("PTTL").arg(&key)).await.expect("it answers");
        life
    };

    create(&store, &alice, 1, lasting(1_000_000)).await;
    create(&store, &bob, 1, lasting(1000)).await;
    assert!((1_000_000..=1_060_000).contains(&life().await));

    store.delete(&alice, &uri("x:1")).await.expect("it can be deleted");
    store.delete(&bob, &uri("x:1")).await.expect("it can be deleted");
    assert_eq!(life().await, -2, "the counter remains without resources");
}

#[tokio::test]
async fn the_migration_counts_the_resources_of_an_older_layout() {
    let server = RedisServer::start().await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let store = on(&server).await;

    let mut counted = Vec::new();
    for (owner, bytes) in neighbours(&redis).iter().zip([100, 10]) {
        counted.push(create(&store, owner, bytes, Details::default()).await);
    }
    counted.push(create(&store, &Owner::new("carol"), 1, Details::default()).await);

    for shard in redis.keys().shards() {
        let usage: Result<u64, _> = redis.query(cmd("DEL").arg(shard.single("usage"))).await;
        let older: Result<(), _> = redis.query(cmd("SET").arg(layout::key(&shard)).arg(2)).await;
        usage.and(older.map(|()| 0)).expect("it answers");
    }

    assert_eq!(used(&store).await, (0, 0));
    let layout = Layout::current();
    layout.migrate(&redis, &Random::system()).await.expect("it migrates");
    assert_eq!(used(&store).await, (3, counted.iter().sum()));

    store.delete(&Owner::new("alice"), &uri("x:1")).await.expect("it can be deleted");
    assert_eq!(used(&store).await, (2, counted[1..].iter().sum()));

    let lives = redis.keys().shards().map(async |shard| {
        let life: i64 =
            redis.query(cmd("PTTL").arg(shard.single("usage"))).await.expect("it answers");
        life
    });
    let lives = futures_util::future::join_all(lives).await;
    assert!(lives.iter().all(|life| *life == -2 || *life > 0), "{lives:?}");
}
