//! Links to resources.

use larder_identity::{Identity, Principal};

use super::{Caller, Harness, refused, resource_uri, with_ttl};
use crate::store::{Audience, Share};

/// The caller of a server without authentication, as an owner and as a reader.
async fn local(harness: &dyn Harness) -> (Caller, Identity) {
    let store = harness.store(super::Setup::default()).await;
    let owner = Principal::Local.owner();
    (Caller { store, owner }, Identity::local())
}

/// A link shares its current revision and later ones; earlier ones only on request. A resource that
/// is created again is not shared.
pub async fn a_link_shares_from_its_revision_on(harness: &dyn Harness) {
    let (alice, reader) = local(harness).await;
    let uri = resource_uri("temp://a");
    alice.put("temp://a", "a secret").await;
    alice.update("temp://a", "redacted").await;

    let share = |share: Share, id: &'static str| alice.store.share(&reader, &uri, share, id);

    let link = share(Audience::Everyone.into(), "1").await.expect("it is shared").uri.clone();
    let all = Share { earlier_revisions: true, ..Audience::Everyone.into() };
    let all = share(all, "2").await.expect("it is shared").uri.clone();
    alice.update("temp://a", "new").await;

    let numbers = async |link| {
        let revisions = alice.store.read_revisions(&reader, link).await.expect("it is shared");
        revisions.iter().map(|found| found.entry.revision).collect::<Vec<_>>()
    };

    assert_eq!((numbers(&link).await, numbers(&all).await), (vec![2, 3], vec![1, 2, 3]));

    let found = alice.store.read_revision(&reader, &link, Some(2)).await.expect("it is shared");
    assert_eq!(found.bytes().await.expect("it can be read"), "redacted");
    let earlier = refused(alice.store.read_revision(&reader, &link, Some(1)).await);
    assert!(earlier.to_string().ends_with("Available revisions: 2, 3."), "{earlier}");

    let current = alice.store.read(&reader, &link).await.expect("it is shared");
    assert_eq!(current.bytes().await.expect("it can be read"), "new");

    alice.delete("temp://a").await;
    harness.pass(harness.tick()).await;
    alice.put("temp://a", "another").await;
    for revision in [None, Some(1)] {
        let gone = refused(alice.store.read_revision(&reader, &link, revision).await);
        assert!(gone.is_not_found(), "{gone:?}");
    }
}

/// A link with a time to live ends after it, and any link ends with its resource.
pub async fn a_link_can_end_before_its_resource(harness: &dyn Harness) {
    let (alice, reader) = local(harness).await;
    let uri = resource_uri("temp://a");
    let tick = harness.tick();
    let entry = alice.create("temp://a", "text", with_ttl(100 * tick)).await;

    let share = |ttl| Share { ttl, ..Audience::Everyone.into() };
    let short = alice.store.share(&reader, &uri, share(Some(2 * tick)), "1").await;
    let short = short.expect("it is shared");
    let long = alice.store.share(&reader, &uri, share(Some(10_000 * tick)), "2").await;
    let long = long.expect("it is shared");

    // The clock of the store may have moved on between the two calls.
    let later = long.expires.since(entry.expires);
    assert!(later < tick.max(std::time::Duration::from_secs(1)), "it outlives by {later:?}");

    harness.pass(2 * tick).await;
    let gone = refused(alice.store.read(&reader, &short.uri).await);
    assert!(gone.is_not_found(), "{gone:?}");
    alice.store.read(&reader, &long.uri).await.expect("it is shared");
}
