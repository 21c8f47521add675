//! Resources that come from another store.

use std::sync::Arc;

use futures_util::StreamExt;
use larder_identity::{Identity, Owner, Principal};

use super::{Caller, Harness, Setup, in_pieces, long_text, noise, refused, resource_uri, with_ttl};
use crate::store::{
    Audience, Content, Details, Entry, Restored, Store, StoreError, StoredResource,
};

async fn restore(to: &Store, found: &StoredResource) -> Result<Restored, StoreError> {
    let pieces = found.stream().map(|piece| piece.map_err(std::io::Error::other));
    to.restore(&found.entry, pieces.boxed()).await
}

/// Restores all revisions of a resource. Returns the outcome of each.
async fn restore_all(from: &Store, to: &Store, owner: &Owner, uri: &str) -> Vec<Restored> {
    let revisions = from.revisions(owner, &resource_uri(uri)).await.expect("it exists");

    let mut restored = Vec::new();
    for found in revisions {
        restored.push(restore(to, &found).await.expect("it is restored"));
    }
    restored
}

/// The parts of an entry that a store may not decide by itself.
fn facts(entry: &Entry) -> impl PartialEq + std::fmt::Debug + use<> {
    let Entry { uri, owner, revision, name, title, description, mime_type, .. } = entry.clone();
    let Entry { kind, size, lines, sha256, created, updated, expires, session, .. } = entry.clone();

    let texts = (uri, owner, name, title, description, mime_type, session);
    let numbers = (revision, kind, size, lines, sha256, created, updated, expires);
    (texts, numbers, entry.origins.clone(), entry.records.clone())
}

/// Metadata, revisions, times, content and links equal the original. A second import changes nothing.
pub async fn a_restored_resource_equals_the_original(harness: &dyn Harness) {
    let from = harness.store(Setup::default()).await;
    let to = harness.store(Setup::default()).await;
    let owner = Principal::Local.owner();

    let alice = Caller { store: from.clone(), owner: owner.clone() };
    let details = Details {
        name: Some("a name".into()),
        title: Some("a title".into()),
        description: Some("a description".into()),
        session: Some("a session".into()),
        ..Details::default()
    };

    alice.create("temp://a", Content::text_stream(in_pieces(long_text())), details).await;
    alice.update("temp://a", noise(300_000)).await;
    alice.update("temp://a", serde_json::json!([{ "n": 1 }, { "n": 2 }])).await;
    alice.put("temp://empty", "").await;

    let reader = Identity::local();
    let link = from.share(&reader, &resource_uri("temp://a"), Audience::Everyone, "1").await;
    let link = link.expect("it is shared").uri.clone();

    harness.pass(harness.tick()).await;

    for uri in ["temp://a", "temp://empty", link.as_str()] {
        let first = restore_all(&from, &to, &owner, uri).await;
        assert!(first.iter().all(|restored| *restored == Restored::Written), "{uri}: {first:?}");
        let again = restore_all(&from, &to, &owner, uri).await;
        assert!(again.iter().all(|restored| *restored == Restored::Present), "{uri}: {again:?}");

        let revisions = async |store: &Store| {
            store.revisions(&owner, &resource_uri(uri)).await.expect("it exists")
        };
        let ours = revisions(&from).await;
        let theirs = revisions(&to).await;
        assert_eq!(ours.len(), theirs.len(), "{uri}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(facts(&ours.entry), facts(&theirs.entry));
            let ours = ours.bytes().await.expect("it can be read");
            let theirs = theirs.bytes().await.expect("it can be read");
            assert_eq!(ours, theirs);
        }
    }

    let usage = async |store: &Store| store.usage_of(&owner).await.expect("it is counted");
    assert_eq!(usage(&from).await, usage(&to).await);
    let shared = to.read(&reader, &link).await.expect("the link leads to it");
    assert_eq!(shared.entry.revision, 3);

    let there = Caller { store: to, owner };
    assert_eq!(there.update("temp://a", "new").await.revision, 4);
}

/// A restored resource expires when it would have expired in the other store.
pub async fn a_restored_resource_expires_on_time(harness: &dyn Harness) {
    let from = Caller::alone(harness).await;
    let to = Caller { store: harness.store(Setup::default()).await, owner: from.owner.clone() };
    let ttl = 10 * harness.tick();
    let expires = from.create("temp://a", "text", with_ttl(ttl)).await.expires;

    let found = from.get("temp://a").await;
    let restored = restore(&to.store, &found).await.expect("it is restored");
    assert_eq!(restored, Restored::Written);
    assert_eq!(to.get("temp://a").await.entry.expires, expires);

    harness.pass(ttl).await;
    to.assert_missing("temp://a").await;
    let late = restore(&to.store, &found).await.expect("it is left out");
    assert_eq!(late, Restored::Expired);
}

/// Content that does not have the announced digest is not stored.
pub async fn a_restored_revision_must_have_its_digest(harness: &dyn Harness) {
    let from = Caller::alone(harness).await;
    let to = harness.store(Setup::default()).await;
    from.put("temp://a", "one").await;

    let found = from.get("temp://a").await;

    let damaged = Entry { sha256: "0".repeat(64), ..Entry::clone(&found.entry) };
    let damaged = StoredResource { entry: Arc::new(damaged), ..found };
    let wrong = refused(restore(&to, &damaged).await);
    assert!(matches!(wrong, StoreError::NotAsAnnounced(_)), "{wrong:?}");

    Caller { store: to, owner: from.owner }.assert_missing("temp://a").await;
}

/// A resource stays if it was written later than the restored one; an earlier one is replaced.
pub async fn a_later_write_is_not_replaced(harness: &dyn Harness) {
    let from = Caller::alone(harness).await;
    let to = Caller { store: harness.store(Setup::default()).await, owner: from.owner.clone() };
    for n in 0..3 {
        to.put("temp://earlier", format!("there {n}")).await;
    }

    harness.pass(harness.tick()).await;
    from.put("temp://earlier", "here").await;
    from.put("temp://later", "here").await;
    harness.pass(harness.tick()).await;
    to.put("temp://later", "there").await;

    let restored = async |uri| restore_all(&from.store, &to.store, &from.owner, uri).await;
    assert_eq!(restored("temp://earlier").await, [Restored::Written]);
    assert_eq!(restored("temp://later").await, [Restored::Later]);

    assert_eq!(to.read("temp://earlier").await, "here");
    assert_eq!(to.get("temp://earlier").await.entry.revision, 1);
    assert_eq!(to.read("temp://later").await, "there");
}
