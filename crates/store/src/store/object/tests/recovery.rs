//! Damaged objects, and changes whose instance died before their end.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the extensions are our own")]

use larder_identity::Owner;
use larder_runtime::{
    clock::{Clock, SystemClock},
    hex::hex,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    location::{HOUR, Location, lasting, name, read},
    open,
};
use crate::{
    store::object::kept::GRACE,
    store::object::stored_entry::StoredContent,
    store::{Details, StoreError},
    testing::store::{Setup, noise},
};

#[tokio::test(flavor = "multi_thread")]
async fn content_without_an_entry_is_removed() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        // The age of an object is by the clock of the location, so the test's clock must agree.
        location.clock.advance(SystemClock.now().since(location.clock.now()));

        let short = lasting(HOUR / 2);
        store.create(&alice, name("x://a"), "text".into(), short).await.expect("it fits");

        // An instance died after it wrote the content and before the entry.
        let objects = open(&location.url, location.s3.as_deref()).await.objects;
        let orphan = "alice/x=/_/_/_a!/orphan.content";
        objects.put(&orphan.into(), "text").await.expect("there is room");

        let _maintained =
            AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }));
        // The orphan's upload may still run at first. Later, readers have the grace period.
        for span in [HOUR / 2, 3 * HOUR, GRACE] {
            assert!(location.files().await.iter().any(|file| file == orphan), "{span:?}");
            location.clock.advance(span);
            // The sweep has then processed the due files and scheduled the next check.
            location.until(|files| !files.iter().any(|file| location.is_due(file))).await;
        }

        location.only_ledgers_are_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_affects_one_resource_only_and_can_be_overwritten() {
    let [location, _] = Location::each().await;
    let store = location.store(&Setup::default()).await;
    let alice = Owner::new("alice");

    // Text is compressed, and compressed content has a checksum.
    let large = hex(&noise(2 * StoredContent::MAX_IN_ENTRY)).into_bytes();
    for uri in ["x://entry", "x://content", "x://cut", "x://whole", "x://small"] {
        let content =
            if uri == "x://small" { "s".repeat(5000).into() } else { large.clone().into() };
        store.create(&alice, name(uri), content, Details::default()).await.expect("it fits");
    }

    let root = location.folder.path().join("deep/down");
    for file in location.files().await {
        let path = root.join(&file);
        if file.starts_with("alice/x=/_/_/_entry!") && file.ends_with(".json") {
            std::fs::write(path, "{").expect("it can be written");
        } else if file.starts_with("alice/x=/_/_/_content!") && file.ends_with(".content") {
            let mut bytes = std::fs::read(&path).expect("it can be read");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(path, bytes).expect("it can be written");
        } else if file.starts_with("alice/x=/_/_/_cut!") && file.ends_with(".content") {
            std::fs::write(path, "x").expect("it can be written");
        } else if file.starts_with("alice/x=/_/_/_small!") {
            let entry = std::fs::read_to_string(&path).expect("it can be read");
            let (before, content) = entry.split_once(r#"base64":""#).expect("it has the content");
            let (start, rest) = content.split_at(16);
            let entry = format!("{before}base64\":\"{start}{}{}", "AAAA", &rest[4..]);
            std::fs::write(path, entry).expect("it can be written");
        }
    }

    let corrupt = |error: &StoreError| matches!(error, StoreError::Corrupt { .. });
    let entry = store.get(&alice, &name("x://entry")).await.map(|found| found.entry);
    assert!(entry.as_ref().is_err_and(corrupt), "{entry:?}");
    for uri in ["x://content", "x://cut", "x://small"] {
        let found = store.get(&alice, &name(uri)).await.expect("its entry is not damaged");
        let read = found.bytes().await;
        assert!(read.is_err(), "{uri} is damaged, but was read");
    }

    let whole = store.get(&alice, &name("x://whole")).await.expect("it is there");
    assert!(whole.bytes().await.expect("it can be read") == large);

    let page = store.list(&alice, "", None, 10).await.expect("it can be listed");
    let listed: Vec<&str> = page.entries.iter().map(|entry| entry.uri.as_str()).collect();
    assert_eq!(listed, ["x://content", "x://cut", "x://small", "x://whole"]);

    store.create(&alice, name("x://entry"), "new".into(), Details::default()).await.expect("fits");
    assert_eq!(read(&store, &alice, "x://entry").await, "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_not_applied_is_applied_by_the_next_instance() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        for uri in ["x://a", "x://b"] {
            store.create(&alice, name(uri), "text".into(), lasting(HOUR)).await.expect("it fits");
        }
        store
            .update(&alice, name("x://b"), "new".into(), Details::default())
            .await
            .expect("it is there");
        drop(store);

        // The instance died after it wrote the ledger record and before the entry.
        location.remove("alice/x=/_/_/_b!/3.json").await;

        let store = location.store(&Setup::default()).await;
        store.delete(&alice, &name("x://a")).await.expect("it can be deleted");
        assert_eq!(read(&store, &alice, "x://b").await, "new");
    }
}
