//! What listeners hear.

use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::task::AbortOnDropHandle;

use super::{Caller, Harness, Setup, lasting, refused};
use crate::store::{ChangeKind, Changes, Details, Store};

/// The longest that a change may take to be heard. So long may what has
/// expired still lie about where nothing but a sweep finds it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Each creation, update, deletion and expiry is heard once, in the order in
/// which they happen.
pub async fn each_change_is_heard_once_and_in_order(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let _maintained = maintained(&alice.store);
    let mut changes = alice.store.feed().listen(&alice.owner);
    alice.put("temp://a", "created").await;
    alice.update("temp://a", "updated").await;
    alice.put("temp://a", "created over the old").await;
    alice.delete("temp://a").await;
    alice.create("temp://a", "created anew", lasting(harness.tick())).await;
    for kind in [
        ChangeKind::Created,
        ChangeKind::Updated,
        ChangeKind::Updated,
        ChangeKind::Deleted,
        ChangeKind::Created,
    ] {
        assert_eq!(heard(&mut changes).await, (kind, "temp://a".to_owned()));
    }
    harness.pass(harness.tick()).await;
    assert_eq!(heard(&mut changes).await, (ChangeKind::Expired, "temp://a".to_owned()));
    nothing_more(&mut changes, &alice).await;
}

/// What changes nothing is not heard.
pub async fn what_is_refused_is_not_heard(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(10)).await;
    let alice = Caller::new(&store, "alice");
    let mut changes = store.feed().listen(&alice.owner);
    alice.delete("temp://never").await;
    refused(alice.try_update("temp://never", "text", None).await);
    refused(alice.try_create("temp://a", "over the quota", Details::default()).await);
    refused(alice.try_create("temp://a", "text", lasting(Duration::ZERO)).await);
    nothing_more(&mut changes, &alice).await;
}

/// A listener for one owner hears that one; a listener for all hears all.
pub async fn an_owner_hears_only_their_own(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let _maintained = maintained(&store);
    let (alice, bob) = (Caller::new(&store, "alice"), Caller::new(&store, "bob"));
    let mut bobs = store.feed().listen(&bob.owner);
    let mut all = store.feed().listen_to_all();
    alice.create("temp://a", "alice's", lasting(harness.tick())).await;
    assert_eq!(heard(&mut all).await, (ChangeKind::Created, "temp://a".to_owned()));
    harness.pass(harness.tick()).await;
    assert_eq!(heard(&mut all).await, (ChangeKind::Expired, "temp://a".to_owned()));
    alice.put("temp://b", "alice's").await;
    alice.update("temp://b", "alice's").await;
    alice.delete("temp://b").await;
    for kind in [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted] {
        assert_eq!(heard(&mut all).await, (kind, "temp://b".to_owned()));
    }
    nothing_more(&mut bobs, &bob).await;
}

/// However many find a resource expired, it expires once.
pub async fn many_readers_make_one_expiry(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut changes = alice.store.feed().listen(&alice.owner);
    alice.create("temp://a", "short-lived", lasting(harness.tick())).await;
    assert_eq!(heard(&mut changes).await, (ChangeKind::Created, "temp://a".to_owned()));
    harness.pass(harness.tick()).await;
    join_all((0..20).map(|_| alice.sees_nothing_at("temp://a"))).await;
    alice.delete("temp://a").await;
    let _maintained = maintained(&alice.store);
    assert_eq!(heard(&mut changes).await, (ChangeKind::Expired, "temp://a".to_owned()));
    nothing_more(&mut changes, &alice).await;
}

/// What nobody asks for any more is removed as well, and again after there
/// was nothing left to remove.
pub async fn what_nobody_asks_for_expires_all_the_same(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let _maintained = maintained(&alice.store);
    let mut changes = alice.store.feed().listen(&alice.owner);
    for _ in 0..2 {
        alice.create("temp://later", "text", lasting(2 * harness.tick())).await;
        alice.create("temp://sooner", "text", lasting(harness.tick())).await;
        for uri in ["temp://later", "temp://sooner"] {
            assert_eq!(heard(&mut changes).await, (ChangeKind::Created, uri.to_owned()));
        }
        for uri in ["temp://sooner", "temp://later"] {
            harness.pass(harness.tick()).await;
            assert_eq!(heard(&mut changes).await, (ChangeKind::Expired, uri.to_owned()));
        }
    }
}

/// Runs what the backend does without being asked, for as long as it is held.
fn maintained(store: &Store) -> AbortOnDropHandle<()> {
    let store = store.clone();
    AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
}

async fn heard(changes: &mut Changes) -> (ChangeKind, String) {
    let change = tokio::time::timeout(PATIENCE, changes.next()).await.expect("a change is heard");
    let change = change.expect("none is missed").expect("the feed goes on");
    (change.kind, change.uri.to_string())
}

/// Since changes are heard in order, the next one tells what came before it.
async fn nothing_more(changes: &mut Changes, listener: &Caller) {
    listener.put("temp://next", "text").await;
    assert_eq!(heard(changes).await, (ChangeKind::Created, "temp://next".to_owned()));
}
