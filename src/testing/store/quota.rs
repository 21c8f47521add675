//! The quota of an owner.

use futures_util::stream;
use tokio::task::JoinSet;

use super::{Caller, Harness, Setup, long_text, refused, with_ttl};
use crate::store::{Content, Details, StoreError, StoreLimits, Usage};

/// Content up to the quota is stored, exact to the byte. Anything more is refused
/// with a reason, and evicts nothing.
pub async fn the_byte_quota_is_exact(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(100)).await;
    let alice = Caller::new(&store, "alice");
    let before = alice.put("temp://a", vec![1; 60]).await;
    is_full(alice.try_create("temp://b", vec![2; 41], Details::default()).await);
    is_full(alice.try_update("temp://a", vec![2; 101], None).await);
    assert_eq!(alice.get("temp://a").await.entry, before);
    assert_eq!(alice.read("temp://a").await, vec![1; 60]);
    assert_eq!(alice.list("").await, ["temp://a"]);
    alice.put("temp://b", vec![2; 40]).await;
    is_full(alice.try_create("temp://c", vec![3; 1], Details::default()).await);
}

/// The quota of resources is exact and counts empty ones. At the limit, existing
/// resources can be replaced.
pub async fn the_resource_quota_is_exact(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_resources(2)).await;
    let alice = Caller::new(&store, "alice");
    alice.put("temp://a", "").await;
    alice.put("temp://b", "text").await;
    is_full(alice.try_create("temp://c", "", Details::default()).await);
    alice.assert_missing("temp://c").await;
    alice.put("temp://a", "created again").await;
    alice.update("temp://b", "updated").await;
    assert_eq!(alice.read("temp://a").await, "created again");
    assert_eq!(alice.read("temp://b").await, "updated");
}

/// Of concurrent writes, exactly as many succeed as the quota allows.
pub async fn a_quota_holds_for_concurrent_writers(harness: &dyn Harness) {
    let by_bytes = Setup::default().max_bytes(100);
    let by_count = Setup::default().max_resources(10);
    for setup in [by_bytes, by_count] {
        let alice = Caller::new(&harness.store(setup).await, "alice");
        let mut writers = JoinSet::new();
        for n in 0..50 {
            let alice = alice.clone();
            writers.spawn(async move {
                let uri = format!("temp://{n}");
                match alice.try_create(&uri, vec![n; 10], Details::default()).await {
                    Ok(_) => true,
                    refusal => {
                        is_full(refusal);
                        false
                    }
                }
            });
        }
        let succeeded = writers.join_all().await.into_iter().filter(|succeeded| *succeeded);
        assert_eq!(succeeded.count(), 10);
        assert_eq!(alice.list("").await.len(), 10);
    }
}

/// An owner at the limit does not affect other owners.
pub async fn one_owners_quota_is_not_anothers(harness: &dyn Harness) {
    let setup = Setup::default().max_bytes(100).max_resources(1);
    let store = harness.store(setup).await;
    let (alice, bob) = (Caller::new(&store, "alice"), Caller::new(&store, "bob"));
    alice.put("temp://a", vec![1; 100]).await;
    is_full(alice.try_create("temp://b", "text", Details::default()).await);
    bob.put("temp://a", vec![2; 100]).await;
    assert_eq!(alice.read("temp://a").await, vec![1; 100]);
}

/// Usage is right after each kind of change.
pub async fn usage_is_what_all_owners_have(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
    let store = harness.store(Setup { limits, ..Setup::default() }).await;
    let used = async || {
        let Usage { resources, bytes } = store.usage().await.expect("it is known");
        (resources, bytes)
    };
    assert_eq!(used().await, (0, 0));
    let (alice, bob) = (Caller::new(&store, "alice"), Caller::new(&store, "bob"));
    alice.put("temp://a", vec![1; 100]).await;
    alice.put("temp://b", long_text()).await;
    let long = long_text().len() as u64;
    assert_eq!(used().await, (2, 100 + long));
    alice.put("temp://a", vec![1; 50]).await;
    alice.update("temp://b", "four").await;
    bob.put("temp://a", "").await;
    assert_eq!(used().await, (3, 54));
    assert!(alice.delete("temp://b").await && !alice.delete("temp://b").await);
    let arriving = Content::byte_stream(stream::iter([Err(std::io::Error::other("gone"))]));
    refused(bob.try_create("temp://c", arriving, Details::default()).await);
    bob.create("temp://d", vec![1; 1000], with_ttl(2 * harness.tick())).await;
    assert_eq!(used().await, (3, 1050));
    harness.pass(2 * harness.tick()).await;
    // A write removes the writer's expired resources.
    bob.put("temp://e", "e").await;
    assert_eq!(used().await, (3, 51));
    for (caller, uri) in [(&alice, "temp://a"), (&bob, "temp://a"), (&bob, "temp://e")] {
        assert!(caller.delete(uri).await);
    }
    assert_eq!(used().await, (0, 0));
}

/// Deleted content no longer counts, nor does replaced content that is not stored
/// as a revision.
pub async fn deleting_makes_room(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
    let setup = Setup { limits, ..Setup::default() }.max_bytes(100).max_resources(2);
    let alice = Caller::new(&harness.store(setup).await, "alice");
    for _ in 0..3 {
        alice.put("temp://a", vec![1; 90]).await;
        alice.put("temp://a", vec![1; 10]).await;
        alice.put("temp://b", vec![2; 90]).await;
        assert!(alice.delete("temp://b").await, "it existed");
        assert!(alice.delete("temp://a").await, "it existed");
    }
}

/// Expired resources no longer count from their expiry on, even if nobody has
/// requested them since.
pub async fn expiry_makes_room(harness: &dyn Harness) {
    let setup = Setup::default().max_bytes(100).max_resources(1);
    let alice = Caller::new(&harness.store(setup).await, "alice");
    for uri in ["temp://a", "temp://b", "temp://c"] {
        alice.create(uri, vec![1; 100], with_ttl(2 * harness.tick())).await;
        is_full(alice.try_create("temp://more", "text", Details::default()).await);
        harness.pass(2 * harness.tick()).await;
    }
}

#[track_caller]
fn is_full<T>(result: Result<T, StoreError>) {
    match refused(result) {
        StoreError::Full(message) => assert!(!message.is_empty(), "the error has no reason"),
        other => panic!("another error: {other:?}"),
    }
}
