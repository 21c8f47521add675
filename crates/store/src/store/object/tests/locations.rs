//! The objects of a location, and instances that share a location.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the extensions are our own")]

use std::sync::Arc;

use futures_util::{TryStreamExt, future::join_all};
use larder_identity::Owner;
use larder_runtime::{clock::ManualClock, random::Random};
use object_store::{ObjectStore, memory::InMemory};
use tokio_util::task::AbortOnDropHandle;

use super::{
    location::{HOUR, Location, below, lasting, name, patiently, read},
    over, url,
};
use crate::{
    store::object::kept::GRACE,
    store::object::stored_entry::{EarlierRevision, StoredContent},
    store::{
        ChangeKind, Details, ObjectBackend, ObjectLocation, OwnerQuota, Store, StoreError,
        StoreLimits,
    },
    testing::S3Server,
    testing::store::{Setup, noise},
};

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_readable_and_the_next_instance_finds_the_resources() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        let large = noise(StoredContent::MAX_IN_ENTRY + 1);
        for (uri, content) in
            [("results://search/42", large.clone()), ("results://search/43", b"text".to_vec())]
        {
            store.create(&alice, name(uri), content.into(), lasting(HOUR)).await.expect("it fits");
        }
        drop(store);

        let files = location.files().await;
        let own: Vec<_> = files.iter().filter(|file| !file.starts_with('=')).collect();
        assert_eq!(own.len(), 3, "{files:?}");

        let content = own.iter().find(|file| file.ends_with(".content")).expect("it has content");
        assert!(content.starts_with("alice/results=/_/_/_search/_42!/"), "{content}");
        for entry in ["_42!/1.json", "_43!/2.json"] {
            let entry = format!("alice/results=/_/_/_search/{entry}");
            assert!(own.contains(&&entry), "{own:?}");
        }

        assert_eq!(
            below(location.folder.path()).len(),
            if location.s3.is_some() { 0 } else { files.len() }
        );

        let store = location.store(&Setup::default()).await;
        let found = store.get(&alice, &name("results://search/42")).await.expect("it is there");
        assert!(found.bytes().await.expect("it can be read") == large);
        assert_eq!(read(&store, &alice, "results://search/43").await, "text");
    }
}

/// Content in an entry behaves as content in an object does: after a restart, as an earlier
/// revision, and beside content in objects. Its replacement leaves nothing to remove.
#[tokio::test(flavor = "multi_thread")]
async fn small_content_is_in_the_entry_also_of_earlier_revisions() {
    for location in Location::each().await {
        let limits = StoreLimits { revisions: 4, ..StoreLimits::default() };
        let setup = Setup { limits, ..Setup::default() };
        let store = location.store(&setup).await;
        let alice = Owner::new("alice");
        let contents = [
            b"small".to_vec(),
            noise(StoredContent::MAX_IN_ENTRY + 1),
            Vec::new(),
            noise(StoredContent::MAX_IN_ENTRY),
        ];

        let uri = name("x://a");

        for content in &contents {
            let content = content.clone().into();
            store.create(&alice, uri.clone(), content, lasting(HOUR)).await.expect("it fits");
        }

        let store = location.store(&setup).await;

        let revisions = store.revisions(&alice, &uri).await.expect("it is there");
        let mut read = Vec::new();
        for revision in &revisions {
            read.push(revision.bytes().await.expect("it can be read").to_vec());
        }
        assert!(read == contents, "{} revisions", read.len());

        let content = |files: Vec<String>| {
            files.into_iter().filter(|file| file.ends_with(".content")).count()
        };
        assert_eq!(content(location.files().await), 1);

        assert!(store.delete(&alice, &uri).await.expect("it can be deleted"));
        assert!(revisions[0].bytes().await.is_ok_and(|bytes| bytes == contents[0]));
    }
}

/// Entries of earlier versions name an object for all content, and so do their earlier revisions.
#[test]
fn entries_that_have_all_content_in_objects_are_read() {
    let written = r#"{"number":1,"content":"abc","size":5}"#;
    let earlier: EarlierRevision = serde_json::from_str(written).expect("it is read");
    assert_eq!(earlier.content.as_deref(), Some("abc"));
    assert_eq!(serde_json::to_string(&earlier).expect("it is JSON"), written);

    let content: StoredContent = serde_json::from_str(r#""abc""#).expect("it is read");
    assert!(matches!(content, StoredContent::Object(id) if id == "abc"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_of_text_take_less_than_a_third_and_noise_hardly_more_than_its_size() {
    const BYTES: usize = 10_000_000;
    let lines =
        (0..).map(|n| format!("2026-07-28T12:00:00Z INFO request {n} took {} ms\n", n % 977));
    let mut log = String::new();
    lines
        .take_while(|line| {
            log += line;
            log.len() < BYTES
        })
        .for_each(drop);

    for (content, max_bytes) in
        [(log.into_bytes(), BYTES * 3 / 10), (noise(BYTES), BYTES * 101 / 100)]
    {
        let [location, _] = Location::each().await;
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");

        let created = store.create(&alice, name("x:a"), content.clone().into(), Details::default());
        created.await.expect("it fits");
        assert!(read(&store, &alice, "x:a").await == content, "the content differs");

        let sizes = below(location.folder.path()).into_iter().map(|file| {
            let file = std::fs::metadata(location.folder.path().join(file));
            file.expect("it is there").len()
        });
        let stored: u64 = sizes.sum();
        assert!(stored < max_bytes as u64, "it takes {stored} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_uri_or_owner_leads_out_of_the_directory() {
    let [location, _] = Location::each().await;
    let store = location.store(&Setup::default()).await;
    let long = format!("x://{}", "a".repeat(2000));
    let names = [
        "x://../../a",
        "file:///etc/passwd",
        "x:../a",
        "x://%2e%2e%2f%2e%2e%2fa",
        "x://%00",
        &long,
    ];

    for owner in ["..", "/", "../../..", "", "a/../b"] {
        for uri in names {
            store
                .create(&Owner::new(owner), name(uri), uri.into(), Details::default())
                .await
                .expect("it fits");
            assert_eq!(read(&store, &Owner::new(owner), uri).await, uri);
        }
    }

    assert_eq!(below(location.folder.path()).len(), location.files().await.len());
}

#[tokio::test]
async fn where_dots_at_the_end_are_dropped_uris_that_end_in_them_stay_distinct() {
    let memory = Arc::new(InMemory::new());
    let location = over(memory.clone(), true);
    let clock = Arc::new(ManualClock::new());
    let backend =
        ObjectBackend::new(location, clock.clone(), Random::system(), OwnerQuota::default());
    let store = Store::new(Arc::new(backend), clock, StoreLimits::default());

    let long = format!("x:{}", ".".repeat(450));
    let mut names =
        ["x:", "x:.", "x:./.", "x:a", "x:a.", "x:a..", "x:a./b", "x:a/b", "x.:a", &long];
    names.sort_unstable();

    let alice = Owner::new("alice.");
    for uri in names {
        let created = store.create(&alice, name(uri), uri.into(), Details::default()).await;
        created.expect("it fits");
    }

    for uri in names {
        assert_eq!(read(&store, &alice, uri).await, uri);
    }

    let mut listed = Vec::new();
    for _ in names {
        let after = listed.last().map(String::as_str);
        let page = store.list(&alice, "", after, 1).await.expect("it can be listed");
        listed.extend(page.entries.iter().map(|entry| entry.uri.to_string()));
    }
    assert_eq!(listed, names);

    let stored: Vec<_> = memory.list(None).try_collect().await.expect("it can be listed");
    for file in stored {
        let parts = file.location.as_ref().split('/');
        assert!(parts.into_iter().all(|part| !part.ends_with('.')), "{}", file.location);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_expiry_and_deletion_neither_content_nor_entry_remains() {
    for location in Location::each().await {
        let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
        let setup = Setup { limits, ..Setup::default() };
        let store = location.store(&setup).await;
        let alice = Owner::new("alice");
        for uri in ["x://read", "x://swept", "x://deleted"] {
            let [old, new] = [1, 2].map(|more| noise(StoredContent::MAX_IN_ENTRY + more));
            store.create(&alice, name(uri), old.into(), lasting(HOUR)).await.expect("it fits");
            store
                .update(&alice, name(uri), new.into(), Details::default())
                .await
                .expect("it is there");
        }

        store.delete(&alice, &name("x://deleted")).await.expect("it can be deleted");

        let sweeping = store.clone();
        let _maintained =
            AbortOnDropHandle::new(tokio::spawn(async move { sweeping.maintain().await }));

        // Replaced and deleted content stays for the grace period.
        location.clock.advance(GRACE);
        let is_old = |file: &String| file.contains("deleted!") || file.ends_with(".content");
        location.until(|files| files.iter().filter(|file| is_old(file)).count() == 2).await;

        location.clock.advance(HOUR.saturating_sub(GRACE));
        let gone = store.get(&alice, &name("x://read")).await.map(|found| found.entry);
        assert!(matches!(gone, Err(StoreError::Expired { .. })), "{gone:?}");

        location.only_ledgers_are_left().await;
        for uri in ["x://read", "x://swept"] {
            let gone = store.get(&alice, &name(uri)).await.map(|found| found.entry);
            assert!(matches!(gone, Err(StoreError::Expired { .. })), "{gone:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_on_one_location_see_and_count_the_same() {
    for location in Location::each().await {
        let example = location.store(&Setup::default()).await;
        let empty = Vec::new().into();
        let bob = Owner::new("b");
        let example = example.create(&bob, name("x://10"), empty, Details::default());
        let counted = example.await.expect("it fits").counted_bytes();
        let setup = Setup::default().max_bytes(10 * (100 + counted));
        let stores = [location.store(&setup).await, location.store(&setup).await];
        let alice = Owner::new("alice");

        // Concurrent writes to one URI each make a revision.
        let writers = (0..20).map(|n| {
            let store = stores[n % 2].clone();
            let alice = alice.clone();
            async move {
                let content = vec![b'x'; n + 1];
                store.create(&alice, name("x://race"), content.into(), Details::default()).await
            }
        });

        let written = patiently(join_all(writers)).await;
        let mut revisions: Vec<u64> =
            written.iter().map(|entry| entry.as_ref().expect("it fits").revision).collect();
        revisions.sort_unstable();
        assert_eq!(revisions, (1..=20).collect::<Vec<u64>>());

        for store in &stores {
            let found = store.get(&alice, &name("x://race")).await.expect("it is there");
            assert_eq!(found.entry.revision, 20);
            assert_eq!(found.bytes().await.expect("it is there").len() as u64, found.entry.size);
        }
        stores[0].delete(&alice, &name("x://race")).await.expect("it can be deleted");

        // Of concurrent writes to many URIs, as many succeed as the quota allows, to the byte.
        let writers = (0..20).map(|n| {
            let store = stores[n % 2].clone();
            let alice = alice.clone();
            async move {
                let uri = name(&format!("x://{n}"));
                store.create(&alice, uri, vec![b'x'; 100].into(), Details::default()).await
            }
        });

        let written = patiently(join_all(writers)).await;
        let refused = written.iter().filter(|made| matches!(made, Err(StoreError::Full(_))));
        assert_eq!((written.iter().filter(|made| made.is_ok()).count(), refused.count()), (10, 10));

        let page = stores[1].list(&alice, "", None, 100).await.expect("it can be listed");
        assert_eq!(page.entries.len(), 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_instances_publishes_an_expiry() {
    for location in Location::each().await {
        let alice = Owner::new("alice");
        let mut stores = Vec::new();
        for _ in 0..3 {
            stores.push(location.store(&Setup::default()).await);
        }

        let made = stores[0].create(&alice, name("x://a"), "text".into(), lasting(HOUR)).await;
        made.expect("it fits");
        let mut feeds: Vec<_> = stores.iter().map(|store| store.feed().subscribe(&alice)).collect();

        location.clock.advance(HOUR);
        let _maintained: Vec<_> = stores
            .iter()
            .cloned()
            .map(|store| {
                AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
            })
            .collect();
        location.only_ledgers_are_left().await;

        let mut published = 0;
        for (store, feed) in stores.iter().zip(&mut feeds) {
            // Changes arrive in order, so after this change no earlier change is missing.
            store
                .create(&alice, name("x://next"), "".into(), lasting(HOUR))
                .await
                .expect("it fits");
            loop {
                let change = patiently(feed.next()).await.expect("none is missed");
                let change = change.expect("the feed goes on");
                match (change.kind, change.uri.as_str()) {
                    (ChangeKind::Expired, "x://a") => published += 1,
                    (_, "x://next") => break,
                    // The instance that created the resource publishes the creation.
                    (kind, uri) => assert_eq!((kind, uri), (ChangeKind::Created, "x://a")),
                }
            }
        }

        assert_eq!(published, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_has_begun_survives_replacement_and_deletion() {
    for location in Location::each().await {
        let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
        let setup = Setup { limits, ..Setup::default() };
        let store = location.store(&setup).await;
        let alice = Owner::new("alice");

        // Noise does not compress, so the content has several blocks.
        let content = crate::testing::store::noise(1 << 20);
        for uri in ["x://replaced", "x://deleted"] {
            let stored = store.create(&alice, name(uri), content.clone().into(), lasting(HOUR));
            stored.await.expect("it fits");

            let found = store.get(&alice, &name(uri)).await.expect("it is there");

            if uri == "x://deleted" {
                store.delete(&alice, &name(uri)).await.expect("it can be deleted");
            } else {
                for _ in 0..3 {
                    store
                        .update(&alice, name(uri), "new".into(), Details::default())
                        .await
                        .expect("it is there");
                }
            }
            assert!(found.bytes().await.expect("it can still be read") == content);
        }
    }
}

#[tokio::test]
async fn a_location_that_cannot_be_used_is_refused_with_the_reason() {
    let file = tempfile::NamedTempFile::new().expect("there is room");
    let refused = ObjectLocation::open(&url(&file.path().join("below")), &Random::system()).await;
    let refused = refused.expect_err("a file is no directory").to_string();
    assert!(refused.contains("Not a directory"), "{refused}");

    let s3 = S3Server::shared().await;
    let environment = s3.environment().map(|(name, value)| (name.to_owned(), value));
    let nowhere = "s3://no-such-bucket/x";
    let refused =
        ObjectLocation::open_in(nowhere, environment.into_iter(), 0, &Random::system()).await;
    let refused = refused.expect_err("there is no such bucket").to_string();
    assert!(refused.contains(nowhere) && !refused.contains("secret-of-tests"), "{refused}");
}
