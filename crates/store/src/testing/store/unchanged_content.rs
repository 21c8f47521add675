//! Changes that leave the content as it is: it is not written again, whatever the size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{Caller, Harness, Setup, TakesOver, noise, overhead, resource_uri};
use crate::store::{
    Backend, ChangeFeed, Committed, Details, DiskSpace, Draft, Lookup, OwnerPage, OwnerQuota,
    ResourceUri, Rewrite, StoreError, StoredBlock, StoredResource, Upload, Usage, Version,
};

/// Content of several blocks, and of several parts in Redis, that cannot be compressed.
const LARGE: usize = 3 << 20;

/// A backend that counts the bytes of content that uploads receive.
#[derive(Debug)]
struct CountingBackend {
    backend: Arc<dyn Backend>,
    bytes: Arc<AtomicU64>,
}

/// An upload to a [`CountingBackend`].
struct CountingUpload {
    upload: Box<dyn Upload>,
    bytes: Arc<AtomicU64>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Upload for CountingUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.upload.reserve(bytes).await
    }

    fn reserved(&self) -> u64 {
        self.upload.reserved()
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        self.upload.copy(source).await
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.bytes.fetch_add(block.bytes.len() as u64, Ordering::Relaxed);
        self.upload.append(block).await
    }

    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        self.upload.commit(draft).await
    }

    async fn discard(self: Box<Self>) {
        self.upload.discard().await;
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for CountingBackend {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn shared_location(&self) -> Option<String> {
        self.backend.shared_location()
    }

    fn feed(&self) -> &ChangeFeed {
        self.backend.feed()
    }

    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError> {
        let upload = self.backend.begin(owner, uri, reservation).await?;
        Ok(Box::new(CountingUpload { upload, bytes: Arc::clone(&self.bytes) }))
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        self.backend.reserve(owner, uri, id, bytes, ttl).await
    }

    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError> {
        self.backend.release(owner, id, keep).await
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        self.backend.get(owner, uri).await
    }

    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.backend.revisions(owner, uri).await
    }

    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        self.backend.delete(owner, uri, version).await
    }

    fn now(&self) -> Option<Timestamp> {
        self.backend.now()
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.backend.page(owner, prefix, after, limit).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.backend.usage().await
    }

    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        self.backend.owners(after, limit).await
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.backend.usage_of(owner).await
    }

    fn quota(&self) -> OwnerQuota {
        self.backend.quota()
    }

    async fn disk(&self) -> Option<DiskSpace> {
        self.backend.disk().await
    }

    async fn maintain(&self) {
        self.backend.maintain().await;
    }
}

/// A caller of a new store, and the bytes of content that its backend receives.
async fn counted(harness: &dyn Harness) -> (Caller, Arc<AtomicU64>) {
    let store = harness.store(Setup::default()).await;
    let bytes = Arc::new(AtomicU64::new(0));
    let counting = store.wrapped(|backend| CountingBackend { backend, bytes: Arc::clone(&bytes) });
    (Caller::new(&counting, "alice"), bytes)
}

/// A new name, description or expiry, a restored revision, a copy and a move bring no byte of the
/// content to the backend, as far as [`Harness::takes_over`] says, and are read like anything else.
pub async fn unchanged_content_is_not_written_again(harness: &dyn Harness) {
    let (alice, bytes) = counted(harness).await;
    let content = noise(LARGE);
    let day = Duration::from_hours(24);

    let first = alice.put("temp://a", content.clone()).await;
    assert!(bytes.swap(0, Ordering::Relaxed) >= LARGE as u64, "the content itself is counted");

    let rewrite = async |revision, details| {
        let rewrite = Rewrite { revision, ..Rewrite::default() };
        let written = alice.store.rewrite(&alice.owner, resource_uri("temp://a"), rewrite, details);
        written.await.expect("it is written")
    };

    let named = Details { name: Some("Named".into()), ..Details::default() };
    assert_eq!(rewrite(None, named).await.name, "Named");
    let described = Details { description: Some("Described".into()), ..Details::default() };
    assert_eq!(rewrite(None, described).await.description.as_deref(), Some("Described"));
    assert!(alice.read("temp://a").await == content);

    let longer = Details { ttl: Some(2 * day), ..Details::default() };
    let fourth = rewrite(None, longer).await;
    assert!(fourth.expires > first.expires);
    assert_eq!((fourth.revision, &*fourth.name), (4, "Named"));

    // The first revision is gone by now, but not its content.
    assert_eq!(rewrite(Some(2), Details::default()).await.revision, 5);
    assert!(alice.read("temp://a").await == content);

    let written = bytes.swap(0, Ordering::Relaxed);
    let is_written = harness.takes_over() < TakesOver::Revisions;
    assert!(is_written || written == 0, "revisions write {written} bytes; see takes_over");

    let source = alice.get("temp://a").await;
    let copy = resource_uri("temp://copy");
    let copied = alice.store.copy(&source, &alice.owner, copy, Details::default()).await;
    assert_eq!(copied.expect("it is copied").sha256, first.sha256);

    let from = resource_uri("temp://a");
    let to = resource_uri("temp://moved");
    let moved = alice.store.rename(&alice.owner, &from, &to, Details::default()).await;
    assert_eq!(moved.expect("it is moved").sha256, first.sha256);

    let written = bytes.load(Ordering::Relaxed);
    let is_written = harness.takes_over() < TakesOver::Everything;
    assert!(is_written || written == 0, "copies write {written} bytes; see takes_over");

    // Each has the content by itself.
    assert!(alice.read("temp://moved").await == content);
    assert!(alice.delete("temp://moved").await);
    assert!(alice.read("temp://copy").await == content);
}

/// Empty and tiny content, and content around the limits of a backend for small content and for a
/// part, keeps its bytes through a new description, a restored revision, a copy and a move.
pub async fn content_of_any_size_is_changed_copied_and_moved(harness: &dyn Harness) {
    let (alice, _) = counted(harness).await;
    let uri = || resource_uri("temp://a");

    for size in [0, 1, 100, 16 << 10, (16 << 10) + 1, 1 << 20, (1 << 20) + 1] {
        let content = noise(size);
        alice.put("temp://a", content.clone()).await;

        let described = Details { description: Some("Described".into()), ..Details::default() };
        let longer = Details { ttl: Some(Duration::from_hours(25)), ..Details::default() };
        let restored = Rewrite { revision: Some(1), ..Rewrite::default() };
        for (rewrite, details) in [
            (Rewrite::default(), described),
            (Rewrite::default(), longer),
            (restored, Details::default()),
        ] {
            let written = alice.store.rewrite(&alice.owner, uri(), rewrite, details).await;
            let written = written.unwrap_or_else(|error| panic!("{size} bytes: {error}"));
            assert_eq!(written.size, size as u64);
            assert!(alice.read("temp://a").await == content, "{size} bytes");
        }

        let source = alice.get("temp://a").await;
        let copy = resource_uri("temp://copy");
        let copied = alice.store.copy(&source, &alice.owner, copy, Details::default()).await;
        copied.unwrap_or_else(|error| panic!("{size} bytes: {error}"));
        let to = resource_uri("temp://moved");
        let moved = alice.store.rename(&alice.owner, &uri(), &to, Details::default()).await;
        moved.unwrap_or_else(|error| panic!("{size} bytes: {error}"));

        for name in ["temp://copy", "temp://moved"] {
            assert!(alice.read(name).await == content, "{name} of {size} bytes");
            assert!(alice.delete(name).await);
        }
    }
}

/// Revisions with one content count as if each had its own, so that the order of writes and
/// deletions makes no difference to a quota.
pub async fn content_that_revisions_share_counts_for_each(harness: &dyn Harness) {
    let each = overhead(harness).await;
    let (alice, _) = counted(harness).await;
    let content = noise(100_000);
    alice.put("temp://a", content.clone()).await;

    let describe = async |text: &str| {
        let details = Details { description: Some(text.into()), ..Details::default() };
        let rewrite = Rewrite::default();
        let uri = resource_uri("temp://a");
        alice.store.rewrite(&alice.owner, uri, rewrite, details).await.expect("it is written")
    };
    let used = async || alice.store.usage_of(&alice.owner).await.expect("it is counted").bytes;

    describe("1").await;
    describe("2").await;
    assert_eq!(used().await, 3 * (100_000 + each) + 2);
    for n in 3..10 {
        describe(&n.to_string()).await;
    }
    assert_eq!(used().await, 3 * (100_000 + each) + 3, "three revisions are kept");

    alice.update("temp://a", b"other".to_vec()).await;
    alice.update("temp://a", b"other".to_vec()).await;
    let revisions = alice.store.revisions(&alice.owner, &resource_uri("temp://a")).await;
    let earliest = revisions.expect("it exists").swap_remove(0);
    assert!(earliest.bytes().await.expect("it is kept") == content);

    assert!(alice.delete("temp://a").await);
    let usage = alice.store.usage().await.expect("it is counted");
    assert_eq!((usage.resources, usage.bytes), (0, 0));
}
