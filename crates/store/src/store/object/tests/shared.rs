//! Content that several revisions share, and content that the location copies by itself.

#![allow(clippy::unwrap_used)]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the extensions are our own")]

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use larder_identity::Owner;
use larder_runtime::clock::{Clock, SystemClock};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use tokio_util::task::AbortOnDropHandle;

use super::location::{HOUR, Location, lasting, name, read};
use crate::{
    store::object::kept::GRACE,
    store::object::stored_entry::StoredContent,
    store::{Details, Entry, ObjectLocation, Rewrite, Store, StoreError},
    testing::store::{Setup, noise},
};

const LARGE: usize = 2 * StoredContent::MAX_IN_ENTRY;

async fn describe(store: &Store, uri: &str, text: &str) -> Arc<Entry> {
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

#[tokio::test(flavor = "multi_thread")]
async fn content_that_cannot_be_shared_is_read_and_written() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        let content = noise(LARGE);
        let uri = name("x://a");
        store.create(&alice, uri.clone(), content.clone().into(), lasting(HOUR)).await.unwrap();
        let first = store.get(&alice, &uri).await.unwrap();

        // The revision is dropped, but readers have its content for the grace period.
        for n in 0..3 {
            let text = n.to_string().into();
            store.update(&alice, uri.clone(), text, Details::default()).await.unwrap();
        }
        let copied = store.copy(&first, &alice, uri.clone(), Details::default()).await;
        assert_eq!(copied.expect("it is read").revision, 5);
        assert_eq!(read(&store, &alice, "x://a").await, content);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_content_that_is_lost_says_so() {
    for location in Location::each().await {
        let store = location.store(&Setup::default()).await;
        let alice = Owner::new("alice");
        let content = noise(LARGE);
        store.create(&alice, name("x://a"), content.into(), Details::default()).await.unwrap();
        location.remove(&location.contents().await[0]).await;

        let moved = store.rename(&alice, &name("x://a"), &name("x://b"), Details::default()).await;
        let error = moved.expect_err("its content is lost");
        assert!(
            matches!(&error, StoreError::NotFound { uri } if uri.as_str() == "x://a"),
            "{error:?}"
        );
        assert!(store.get(&alice, &name("x://a")).await.is_ok());
        assert!(store.get(&alice, &name("x://b")).await.is_err());
    }
}

/// Objects in memory that cannot be copied.
#[derive(Debug, Default)]
struct Uncopied(InMemory);

impl fmt::Display for Uncopied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects that cannot be copied")
    }
}

#[async_trait]
impl ObjectStore for Uncopied {
    async fn put_opts(&self, to: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.0.put_opts(to, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, how).await
    }

    async fn get_opts(&self, from: &Path, how: GetOptions) -> Result<GetResult> {
        self.0.get_opts(from, how).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(paths)
    }

    fn list(&self, folder: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(folder)
    }

    async fn list_with_delimiter(&self, folder: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(folder).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        let operation = "CopyObject".into();
        Err(object_store::Error::NotImplemented { operation, implementer: self.to_string() })
    }
}

#[tokio::test]
async fn a_location_that_refuses_to_copy_is_not_asked_to() {
    let can_copy = async |objects: Arc<dyn ObjectStore>| {
        let mut location = ObjectLocation::over("memory", objects).copying_up_to(5);
        location.probe("id").await.expect("it is usable");
        assert_eq!(location.objects.list(&Path::default()).count().await, 0);
        location.objects.copies(5)
    };

    assert!(can_copy(Arc::new(InMemory::new())).await);
    assert!(!can_copy(Arc::new(Uncopied::default())).await);
    assert!(!ObjectLocation::over("memory", Arc::new(InMemory::new())).objects.copies(1));
}
