//! The change feed.

use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::task::AbortOnDropHandle;

use super::{Caller, Harness, Setup, refused, with_ttl};
use crate::store::{ChangeKind, Changes, Details, Store};

/// The most time until a change arrives. An expired resource that only a sweep finds may stay for as
/// long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Each creation, update, deletion and expiry is published once, in order.
pub async fn each_change_is_published_once_and_in_order(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let _maintained = maintained(&alice.store);
    let mut changes = alice.store.feed().subscribe(&alice.owner);

    alice.put("temp://a", "created").await;
    alice.update("temp://a", "updated").await;
    alice.put("temp://a", "created over the old").await;
    alice.delete("temp://a").await;
    alice.create("temp://a", "created again", with_ttl(harness.tick())).await;

    for kind in [
        ChangeKind::Created,
        ChangeKind::Updated,
        ChangeKind::Updated,
        ChangeKind::Deleted,
        ChangeKind::Created,
    ] {
        assert_eq!(received(&mut changes).await, (kind, "temp://a".to_owned()));
    }

    harness.pass(harness.tick()).await;
    assert_eq!(received(&mut changes).await, (ChangeKind::Expired, "temp://a".to_owned()));

    nothing_more(&mut changes, &alice).await;
}

/// Refused writes and deletions of nothing publish nothing.
pub async fn a_refused_write_publishes_nothing(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(3000)).await;
    let alice = Caller::new(&store, "alice");
    let mut changes = store.feed().subscribe(&alice.owner);

    alice.delete("temp://never").await;
    refused(alice.try_update("temp://never", "text", None).await);
    refused(alice.try_create("temp://a", "over the quota".repeat(1000), Details::default()).await);
    refused(alice.try_create("temp://a", "text", with_ttl(Duration::ZERO)).await);

    nothing_more(&mut changes, &alice).await;
}

/// A subscription to one owner receives that owner's changes; a subscription to all receives the
/// changes of all owners.
pub async fn a_subscription_receives_only_its_owner(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let _maintained = maintained(&store);
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");
    let mut bobs = store.feed().subscribe(&bob.owner);
    let mut all = store.feed().subscribe_all();

    alice.create("temp://a", "alice's", with_ttl(harness.tick())).await;
    assert_eq!(received(&mut all).await, (ChangeKind::Created, "temp://a".to_owned()));

    harness.pass(harness.tick()).await;
    assert_eq!(received(&mut all).await, (ChangeKind::Expired, "temp://a".to_owned()));

    alice.put("temp://b", "alice's").await;
    alice.update("temp://b", "alice's").await;
    alice.delete("temp://b").await;

    for kind in [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted] {
        assert_eq!(received(&mut all).await, (kind, "temp://b".to_owned()));
    }

    nothing_more(&mut bobs, &bob).await;
}

/// The expiry of a resource is published once, no matter how many readers find it expired.
pub async fn an_expiry_that_many_find_is_published_once(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut changes = alice.store.feed().subscribe(&alice.owner);
    alice.create("temp://a", "short-lived", with_ttl(harness.tick())).await;
    assert_eq!(received(&mut changes).await, (ChangeKind::Created, "temp://a".to_owned()));

    harness.pass(harness.tick()).await;
    join_all((0..20).map(|_| alice.assert_missing("temp://a"))).await;
    alice.delete("temp://a").await;

    let _maintained = maintained(&alice.store);
    assert_eq!(received(&mut changes).await, (ChangeKind::Expired, "temp://a".to_owned()));
    nothing_more(&mut changes, &alice).await;
}

/// Resources that nobody requests expire too, also after the sweep had nothing left to remove.
pub async fn a_resource_that_nobody_requests_expires(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let _maintained = maintained(&alice.store);
    let mut changes = alice.store.feed().subscribe(&alice.owner);

    for _ in 0..2 {
        alice.create("temp://later", "text", with_ttl(2 * harness.tick())).await;
        alice.create("temp://sooner", "text", with_ttl(harness.tick())).await;

        for uri in ["temp://later", "temp://sooner"] {
            assert_eq!(received(&mut changes).await, (ChangeKind::Created, uri.to_owned()));
        }

        for uri in ["temp://sooner", "temp://later"] {
            harness.pass(harness.tick()).await;
            assert_eq!(received(&mut changes).await, (ChangeKind::Expired, uri.to_owned()));
        }
    }
}

/// Runs the backend's background work while the result is held.
fn maintained(store: &Store) -> AbortOnDropHandle<()> {
    let store = store.clone();
    AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
}

async fn received(changes: &mut Changes) -> (ChangeKind, String) {
    let change = tokio::time::timeout(PATIENCE, changes.next()).await.expect("a change arrives");
    let change = change.expect("none is missed").expect("the feed continues");
    (change.kind, change.uri.to_string())
}

/// Checks that no change is left: changes arrive in order, so the next one would come after it.
async fn nothing_more(changes: &mut Changes, caller: &Caller) {
    caller.put("temp://next", "text").await;
    assert_eq!(received(changes).await, (ChangeKind::Created, "temp://next".to_owned()));
}
