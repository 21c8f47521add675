//! Times to live and expiry.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;

use super::{Caller, Harness, Setup, refused, with_ttl};
use crate::store::{Content, StoreError, StoreLimits};

/// A resource without a time to live of its own gets the default one.
pub async fn without_a_ttl_the_default_applies(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let entry = alice.put("temp://day", "lives a day").await;
    assert_eq!(entry.expires.since(entry.created), Duration::from_hours(24));

    let limits = StoreLimits { default_ttl: 2 * harness.tick(), ..StoreLimits::default() };
    let store = harness.store(Setup { limits, ..Setup::default() }).await;
    let alice = Caller::new(&store, "alice");
    alice.put("temp://short", "lives two ticks").await;

    harness.pass(harness.tick()).await;
    assert_eq!(alice.read("temp://short").await, "lives two ticks");
    harness.pass(harness.tick()).await;
    alice.assert_missing("temp://short").await;
}

/// A resource can be read until its expiry. From then on it is neither found nor listed.
pub async fn a_resource_lives_to_its_expiry_and_no_longer(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let ttl = 4 * harness.tick();
    let entry = alice.create("temp://a", "short-lived", with_ttl(ttl)).await;
    assert_eq!(entry.expires.since(entry.created), ttl);
    assert_eq!(entry.updated, entry.created);

    harness.pass(3 * harness.tick()).await;
    assert_eq!(alice.read("temp://a").await, "short-lived");

    harness.pass(harness.tick()).await;
    alice.assert_missing("temp://a").await;
}

/// The time to live starts when the content has arrived, no matter how long that takes.
pub async fn the_ttl_counts_from_the_end_of_the_upload(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let ttl = 2 * harness.tick();

    let (resume, resumed) = oneshot::channel();
    let slow = stream::iter([Ok("slow".into())]).chain(stream::once(async {
        resumed.await.expect("the check continues");
        Ok(" content".into())
    }));

    let creating = alice.create("temp://slow", Content::text_stream(slow), with_ttl(ttl));
    let passing = async {
        harness.pass(2 * ttl).await;
        resume.send(()).expect("the content is awaited");
    };
    let (entry, ()) = tokio::join!(creating, passing);

    assert_eq!(entry.expires.since(entry.created), ttl);
    assert_eq!(alice.read("temp://slow").await, "slow content");
}

/// A time to live of zero, or below the resolution of the store, is refused and nothing is stored.
pub async fn a_ttl_of_zero_is_refused(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    for ttl in [Duration::ZERO, Duration::from_nanos(1)] {
        let refused = refused(alice.try_create("temp://a", "text", with_ttl(ttl)).await);
        assert!(matches!(refused, StoreError::InvalidTtl(_)), "{refused:?}");
        assert_eq!(refused.to_string(), "ttl must be positive");
        alice.assert_missing("temp://a").await;
    }
}

/// The maximum time to live is allowed. A longer one is refused and nothing is stored.
pub async fn a_ttl_over_the_maximum_is_refused(harness: &dyn Harness) {
    let max_ttl = Duration::from_hours(2);
    let limits = StoreLimits { max_ttl, default_ttl: max_ttl, ..StoreLimits::default() };
    let store = harness.store(Setup { limits, ..Setup::default() }).await;
    let alice = Caller::new(&store, "alice");

    let longer = with_ttl(max_ttl + Duration::from_millis(1));
    let refused = refused(alice.try_create("temp://a", "text", longer).await);
    assert!(matches!(refused, StoreError::InvalidTtl(_)), "{refused:?}");
    alice.assert_missing("temp://a").await;
    alice.create("temp://a", "text", with_ttl(max_ttl)).await;
}

/// A listing leaves out expired resources and contains the others.
pub async fn a_listing_omits_expired_resources(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://a", "stays").await;
    alice.create("temp://b", "goes", with_ttl(harness.tick())).await;
    alice.put("temp://c", "stays").await;

    harness.pass(harness.tick()).await;
    assert_eq!(alice.list("temp://").await, ["temp://a", "temp://c"]);
}

/// After an expiry the URI is free, and a resource created there starts at revision 1.
pub async fn an_expired_uri_can_be_used_again(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let first = alice.create("temp://a", "first", with_ttl(harness.tick())).await;

    harness.pass(harness.tick()).await;
    let second = alice.create("temp://a", "second", with_ttl(harness.tick())).await;
    assert_eq!(second.revision, 1);
    assert!(second.created > first.created, "it is as old as the expired one");
    assert_eq!(alice.read("temp://a").await, "second");

    harness.pass(harness.tick()).await;
    alice.assert_missing("temp://a").await;
}

/// Deleting an expired resource reports that it did not exist.
pub async fn deleting_an_expired_resource_deletes_nothing(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.create("temp://a", "short-lived", with_ttl(harness.tick())).await;

    harness.pass(harness.tick()).await;
    assert!(!alice.delete("temp://a").await, "it had expired");
}
