//! Copies of resources, and moves to other URIs.

use std::sync::Arc;

use super::{BLOCK_BYTES, Caller, Details, Harness, Rewrite, Setup, StoreError, resource_uri};

fn described() -> Details {
    Details {
        title: Some("A title".into()),
        description: Some("What it is".into()),
        mime_type: Some("application/x-ndjson".into()),
        ..Details::default()
    }
}

/// A copy has the content and the metadata, and its own life.
pub async fn a_copy_is_a_resource_of_its_own(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");

    let rows = "{\"n\":1,\"text\":\"of some length\"}\n".repeat(BLOCK_BYTES / 8);
    let ttl = Some(10 * harness.tick());
    let source = alice.create("temp://a", rows.clone(), Details { ttl, ..described() }).await;

    let found = alice.get("temp://a").await;
    let copy = async |caller: &Caller, uri, details| {
        store.copy(&found, &caller.owner, resource_uri(uri), details).await.expect("it is copied")
    };

    let copied = copy(&bob, "copies://b/c", Details::default()).await;
    assert_eq!((&*copied.name, copied.revision), ("c", 1));
    assert_eq!(copied.title.as_deref(), Some("A title"));
    assert_eq!(copied.description.as_deref(), Some("What it is"));
    assert_eq!((&copied.mime_type, &copied.sha256), (&source.mime_type, &source.sha256));
    assert_eq!(copied.records, source.records);
    assert!(copied.records.is_some() && copied.expires > source.expires);

    let named = Details { name: Some("Mine".into()), ..Details::default() };
    assert_eq!(copy(&alice, "temp://named", named).await.name, "Mine");
    assert_eq!(copy(&alice, "temp://named", Details::default()).await.revision, 2);

    alice.update("temp://a", "something else").await;
    assert!(bob.read("copies://b/c").await == rows.as_bytes());
    assert!(alice.delete("temp://a").await);
    assert!(bob.read("copies://b/c").await == rows.as_bytes());
}

/// A copy counts like any other resource, and a refused copy leaves nothing.
pub async fn a_copy_counts_and_one_that_does_not_fit_leaves_nothing(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(150_000)).await;
    let alice = Caller::new(&store, "alice");
    alice.put("temp://a", "a".repeat(100_000)).await;
    let found = alice.get("temp://a").await;

    let copied = store.copy(&found, &alice.owner, resource_uri("temp://b"), Details::default());
    assert!(matches!(copied.await, Err(StoreError::Full(_))));

    let from = resource_uri("temp://a");
    let to = resource_uri("temp://b");
    let moved = store.rename(&alice.owner, &from, &to, Details::default());
    assert!(matches!(moved.await, Err(StoreError::Full(_))));

    assert_eq!(alice.list("").await, ["temp://a"]);
    assert_eq!(alice.read("temp://a").await.len(), 100_000);
}

/// A moved resource exists at the new URI only.
pub async fn a_moved_resource_keeps_its_content_and_metadata(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    let ttl = Some(1_000 * harness.tick());
    let source = alice.create("temp://a", "earlier", Details { ttl, ..described() }).await;

    alice.update("temp://a", "current").await;

    let rename = async |from, to| {
        let from = resource_uri(from);
        let to = resource_uri(to);
        store.rename(&alice.owner, &from, &to, Details::default()).await
    };

    let moved = rename("temp://a", "temp://b").await.expect("it is moved");
    assert_eq!(alice.list("").await, ["temp://b"]);
    assert_eq!(alice.read("temp://b").await, "current");
    assert_eq!((moved.title.as_deref(), &*moved.name), (Some("A title"), "b"));

    // The time to live counts from the end of the copy.
    assert!(moved.expires >= source.expires);
    assert!(moved.expires.since(source.expires) < 500 * harness.tick());

    assert!(rename("temp://a", "temp://c").await.expect_err("it is gone").is_not_found());
    assert_eq!(rename("temp://b", "temp://b").await.expect("it stays").uri, moved.uri);
    assert_eq!(alice.list("").await, ["temp://b"]);

    let link = rename("temp://b", "larder://shared/a/b").await;
    assert!(matches!(link, Err(StoreError::ReadOnly { .. })));
    let link = rename("larder://shared/a/b", "temp://c").await;
    assert!(matches!(link, Err(StoreError::ReadOnly { .. })));
    assert_eq!(alice.read("temp://b").await, "current");
}

/// Of two moves at once, one wins as a whole.
pub async fn one_of_two_moves_wins(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    for round in 0..10 {
        let from = format!("temp://{round}");
        alice.put(&from, "text").await;
        let rename = async |to: &str| {
            let from = resource_uri(&from);
            let to = resource_uri(to);
            store.rename(&alice.owner, &from, &to, Details::default()).await
        };

        let (first, second) = tokio::join!(rename("temp://x"), rename("temp://y"));
        let (moved, to) = match (first, second) {
            (Ok(_), Err(error)) => (error.is_not_found(), "temp://x"),
            (Err(error), Ok(_)) => (error.is_not_found(), "temp://y"),
            (first, second) => panic!("{first:?} {second:?}"),
        };

        assert!(moved, "the other one finds nothing");
        assert_eq!(alice.list("").await, [to]);
        assert!(alice.delete(to).await);
    }
}

/// A line that is appended during a move is at one of both URIs, once.
pub async fn a_move_never_loses_a_write(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    alice.put("temp://a", "0\n").await;

    let appending = async {
        let mut appended = 0;
        for n in 1..20 {
            let line = format!("{n}\n").into();
            let rewrite = Rewrite { appended: line, ..Rewrite::default() };
            let uri = resource_uri("temp://a");
            match store.rewrite(&alice.owner, uri, rewrite, Details::default()).await {
                Ok(_) => appended = n,
                Err(error) => {
                    assert!(error.is_not_found(), "{error}");
                    break;
                }
            }
        }
        appended
    };

    let from = resource_uri("temp://a");
    let to = resource_uri("temp://b");
    let moving = store.rename(&alice.owner, &from, &to, Details::default());
    let (appended, moved) = tokio::join!(appending, moving);

    let moved: Arc<_> = moved.expect("it is moved");
    let expected = (0..=appended).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    assert_eq!(alice.read("temp://b").await, expected);
    assert_eq!(alice.list("").await, ["temp://b"]);
    assert_eq!(moved.size, expected.len() as u64);
}
