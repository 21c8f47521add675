//! Content that several revisions share, and content that the location copies by itself.

#![allow(clippy::unwrap_used)]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the extensions are our own")]

use std::{
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

use larder_identity::Owner;
use larder_runtime::clock::{Clock, SystemClock};
use tokio_util::task::AbortOnDropHandle;

use super::location::{HOUR, Location, lasting, name, read};
use crate::{
    store::object::kept::GRACE,
    store::object::stored_entry::StoredContent,
    store::{Details, Entry, Rewrite, Store},
    testing::store::{Setup, noise},
};

const LARGE: usize = 2 * StoredContent::MAX_IN_ENTRY;

async fn describe(store: &Store, uri: &str, text: &str) -> std::sync::Arc<Entry> {
    let details = Details { description: Some(text.to_owned()), ..Details::default() };
    let alice = Owner::new("alice");
    let written = store.rewrite(&alice, name(uri), Rewrite::default(), details).await;
    written.expect("it is written")
}

impl Location {
    /// The objects with content.
    async fn contents(&self) -> Vec<String> {
        let mut files = self.files().await;
        files.retain(|file| file.ends_with(".content"));
        files
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join("deep/down").join(file)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_share_one_object_until_the_last_of_them_is_dropped() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        let content = noise(LARGE);
        store.create(&alice, name("x://a"), content.clone().into(), lasting(HOUR)).await.unwrap();
        let first = location.contents().await;

        for n in 0..5 {
            describe(&store, "x://a", &n.to_string()).await;
        }
        assert_eq!(location.contents().await, first, "one object has the content of all revisions");

        // The last revision that shares it is dropped by the third write, and readers have the
        // grace period.
        let _maintained = {
            let store = store.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
        };
        for _ in 0..2 {
            store.update(&alice, name("x://a"), "other".into(), Details::default()).await.unwrap();
            location.clock.advance(2 * GRACE);
            let earliest = store.revisions(&alice, &name("x://a")).await.unwrap().swap_remove(0);
            assert_eq!(earliest.bytes().await.unwrap(), content);
        }
        store.update(&alice, name("x://a"), "other".into(), Details::default()).await.unwrap();
        assert_eq!(location.contents().await, first);
        location.clock.advance(2 * GRACE);
        location.until(|files| !files.contains(&first[0])).await;

        location.clock.advance(HOUR);
        location.only_ledgers_are_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_dropped_meanwhile_is_not_shared() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        store.create(&alice, name("x://a"), noise(LARGE).into(), Details::default()).await.unwrap();
        let source = store.get(&alice, &name("x://a")).await.unwrap();

        // The revision is dropped after the upload has begun, and before it is committed.
        let mut upload = store.backend.begin(&alice, &name("x://a"), None).await.unwrap();
        assert!(upload.copy(&source).await.unwrap());
        for n in 0..3 {
            let text = n.to_string().into();
            store.update(&alice, name("x://a"), text, Details::default()).await.unwrap();
        }

        let mode = store.creation(&name("x://a"), Details::default(), "text/plain").unwrap();
        let stats = crate::store::blocks::ContentStats::of(&source.entry);
        let committed = store.commit(&alice, name("x://a"), upload, stats, mode).await;
        assert!(committed.expect_err("its content is gone").is_not_found());
        assert_eq!(read(&store, &alice, "x://a").await, "2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_file_takes_no_room_and_is_as_old_as_the_copy() {
    let [location, _] = Location::each().await;
    let store = location.store(&Setup::default()).await;
    let alice = Owner::new("alice");
    let content = noise(LARGE);
    store.create(&alice, name("x://a"), content.clone().into(), Details::default()).await.unwrap();

    let source = location.path(&location.contents().await[0]);
    let now = UNIX_EPOCH + Duration::from_millis(SystemClock.now().as_millis());
    let old = now - Duration::from_hours(48);
    std::fs::File::options().write(true).open(&source).unwrap().set_modified(old).unwrap();

    let found = store.get(&alice, &name("x://a")).await.unwrap();
    store.copy(&found, &alice, name("x://b"), Details::default()).await.unwrap();

    let copies: Vec<_> = location.contents().await.iter().map(|file| location.path(file)).collect();
    assert_eq!(copies.len(), 2);
    for copy in copies {
        let file = std::fs::metadata(&copy).unwrap();
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&file), 2);
        assert!(file.modified().unwrap() > old + Duration::from_hours(47), "it is not old");
    }

    assert!(store.delete(&alice, &name("x://a")).await.unwrap());
    location.clock.advance(2 * GRACE);
    assert_eq!(read(&store, &alice, "x://b").await, content);
}
