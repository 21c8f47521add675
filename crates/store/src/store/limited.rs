//! [`LimitedBackend`]: any backend, with a limit on what all owners store together.

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
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Backend, ChangeFeed, Committed, DiskSpace, Draft, Lookup, OwnerPage, OwnerQuota, ResourceUri,
    StoreError, StoredBlock, StoredResource, Upload, Usage, Version,
};

/// How long a count of the stored bytes is used. The count misses what other processes store in
/// that time.
const COUNT_TTL: Duration = Duration::from_secs(1);

/// The bytes that all owners may store together: resources, reservations of uploads in progress,
/// and the other uploads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TotalLimit {
    /// Bytes, counted as the bytes of one owner are.
    pub bytes: u64,
    /// The setting, which errors name.
    pub setting: &'static str,
}

/// A backend with a limit on all owners together.
#[derive(Debug)]
pub(super) struct LimitedBackend {
    backend: Arc<dyn Backend>,
    total: Arc<LimitedTotal>,
}

impl LimitedBackend {
    pub(super) fn new(backend: Arc<dyn Backend>, limit: TotalLimit) -> Self {
        let total = LimitedTotal {
            backend: Arc::clone(&backend),
            limit,
            uploading: AtomicU64::new(0),
            counted: Mutex::default(),
            counting: tokio::sync::Mutex::default(),
        };
        Self { backend, total: Arc::new(total) }
    }
}

/// The bytes that all owners store, compared with the limit.
#[derive(Debug)]
struct LimitedTotal {
    backend: Arc<dyn Backend>,
    limit: TotalLimit,

    /// The bytes of this process's uploads that the backend has not reserved.
    uploading: AtomicU64,
    /// The stored and reserved bytes, and when they were counted.
    counted: Mutex<Option<(u64, Instant)>>,
    /// Held during a count, so that concurrent callers use its result.
    counting: tokio::sync::Mutex<()>,
}

impl LimitedTotal {
    /// The stored and reserved bytes, counted at `since` or later.
    async fn counted(&self, since: Instant) -> Result<u64, StoreError> {
        if let Some(bytes) = self.known(since) {
            return Ok(bytes);
        }

        let _counting = self.counting.lock().await;
        if let Some(bytes) = self.known(since) {
            return Ok(bytes);
        }

        let now = Instant::now();
        let usage = self.backend.usage().await?;
        let bytes = usage.bytes.saturating_add(usage.reserved);

        *self.counted.lock() = Some((bytes, now));
        Ok(bytes)
    }

    /// The last count, if it was made at `since` or later.
    fn known(&self, since: Instant) -> Option<u64> {
        let counted = *self.counted.lock();
        counted.filter(|(_, at)| *at >= since).map(|(bytes, _)| bytes)
    }

    /// Checks that the uploads of this process fit.
    ///
    /// # Errors
    /// [`StoreError::Full`], which names the setting.
    async fn check(&self) -> Result<(), StoreError> {
        let now = Instant::now();
        if self.fits(now.checked_sub(COUNT_TTL).unwrap_or(now)).await? {
            return Ok(());
        }
        // A second count, made now, reflects recent deletions and expiries.
        self.check_now(0).await
    }

    /// Whether everything fits by a count made at `since` or later.
    async fn fits(&self, since: Instant) -> Result<bool, StoreError> {
        let used = self.counted(since).await?;
        Ok(used.saturating_add(self.uploading.load(Ordering::Acquire)) <= self.limit.bytes)
    }

    /// Checks against a fresh count, which includes other instances' reservations. `own` are the
    /// bytes that the caller has just reserved. Of two uploads that exceed the limit together, at
    /// least the upload that is counted last is refused.
    async fn check_now(&self, own: u64) -> Result<(), StoreError> {
        let now = Instant::now();
        if self.fits(now).await? {
            return Ok(());
        }

        let used = self.known(now).unwrap_or(self.limit.bytes).saturating_sub(own);
        Err(StoreError::Full(format!(
            "The {} store is full: {used} of {} bytes are used ({}). Delete resources, or wait until some expire.",
            self.backend.name(),
            self.limit.bytes,
            self.limit.setting,
        )))
    }

    /// Adjusts the last count by what this process has reserved or committed since.
    fn adjust(&self, before: u64, after: u64) {
        if let Some((counted, _)) = &mut *self.counted.lock() {
            *counted = counted.saturating_add(after).saturating_sub(before);
        }
    }
}

/// An upload whose bytes count in the total until it ends.
struct LimitedUpload {
    upload: Box<dyn Upload>,
    /// Whether the caller made a reservation before the upload, for all of its content.
    is_reserved: bool,
    /// The bytes that have arrived or are announced.
    bytes: u64,
    /// How many of `bytes` the backend had reserved when last asked.
    reserved: u64,
    arrived: u64,
    counted: UnreservedBytes,
}

/// The bytes of one upload that the backend has not reserved, counted in the total until this
/// value is dropped.
struct UnreservedBytes {
    total: Arc<LimitedTotal>,
    bytes: u64,
}

impl UnreservedBytes {
    /// Replaces the bytes that the upload counts.
    fn set(&mut self, bytes: u64) {
        self.total.uploading.fetch_add(bytes, Ordering::AcqRel);
        self.total.uploading.fetch_sub(self.bytes, Ordering::AcqRel);
        self.bytes = bytes;
    }
}

impl LimitedUpload {
    /// Counts at least `bytes` of content.
    async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        if self.is_reserved {
            return Ok(());
        }

        self.bytes = self.bytes.max(bytes);
        self.counted.set(self.bytes.saturating_sub(self.reserved));
        self.counted.total.check().await
    }

    /// Stops counting the bytes that the backend has reserved.
    fn settle(&mut self) {
        let before = std::mem::replace(&mut self.reserved, self.upload.reserved());
        self.counted.total.adjust(before, self.reserved);

        if !self.is_reserved {
            self.counted.set(self.bytes.saturating_sub(self.reserved));
        }
    }
}

impl Drop for UnreservedBytes {
    fn drop(&mut self) {
        self.total.uploading.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Upload for LimitedUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.cover(bytes).await?;
        self.upload.reserve(bytes).await?;

        let before = self.reserved;
        self.settle();

        // Other instances may have reserved bytes since the last count.
        if self.reserved > before {
            self.counted.total.check_now(self.reserved).await
        } else {
            Ok(())
        }
    }

    fn reserved(&self) -> u64 {
        self.upload.reserved()
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        self.cover(source.entry.size).await?;

        let is_copied = self.upload.copy(source).await?;
        self.settle();
        Ok(is_copied)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.arrived += block.size;
        self.cover(self.arrived).await?;

        self.upload.append(block).await?;
        self.settle();
        Ok(())
    }

    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        let Self { upload, counted, reserved, is_reserved, .. } = *self;

        // Empty content has no block, but its metadata counts.
        if !is_reserved {
            counted.total.check().await?;
        }

        let committed = upload.commit(draft).await?;
        counted.total.adjust(reserved, committed.entry.counted_bytes());
        Ok(committed)
    }

    async fn discard(self: Box<Self>) {
        self.upload.discard().await;
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for LimitedBackend {
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
        let counted = UnreservedBytes { total: Arc::clone(&self.total), bytes: 0 };

        Ok(Box::new(LimitedUpload {
            upload,
            is_reserved: reservation.is_some(),
            bytes: 0,
            reserved: 0,
            arrived: 0,
            counted,
        }))
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        let before = self.backend.reserve(owner, uri, id, bytes, ttl).await?;

        if bytes > before
            && let Err(full) = self.total.check_now(bytes - before).await
        {
            self.backend.release(owner, id, before).await?;
            return Err(full);
        }

        Ok(before)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Content, Details, Entry, MemoryLimits, OwnerQuota, Store, StoreLimits};
    use larder_runtime::clock::ManualClock;

    const LIMIT: TotalLimit = TotalLimit { bytes: 20_000, setting: "objects.bytes" };

    fn store(clock: &ManualClock) -> Store {
        unlimited(clock).limited_to(LIMIT)
    }

    fn unlimited(clock: &ManualClock) -> Store {
        let quota = OwnerQuota { bytes: u64::MAX, resources: u64::MAX };
        let memory = MemoryLimits { bytes: u64::MAX, per_owner: quota };
        let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
        Store::memory(Arc::new(clock.clone()), memory, limits)
    }

    async fn begin(store: &Store, owner: &str) -> Box<dyn Upload> {
        let upload = store.backend.begin(&Owner::new(owner), &uri(), None).await;
        upload.expect("it begins")
    }

    async fn create(
        store: &Store,
        owner: &str,
        content: impl Into<Content>,
    ) -> Result<Arc<Entry>, StoreError> {
        let uri = uri();
        let details = Details { ttl: Some(Duration::from_secs(60)), ..Details::default() };
        store.create(&Owner::new(owner), uri, content.into(), details).await
    }

    #[track_caller]
    fn is_refused(result: Result<Arc<Entry>, StoreError>) {
        match result {
            Err(StoreError::Full(text)) => {
                assert!(text.contains("of 20000 bytes are used (objects.bytes)"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn all_owners_share_the_limit() {
        let clock = ManualClock::new();
        let store = store(&clock);

        create(&store, "alice", vec![1; 8000]).await.expect("it fits");
        create(&store, "bob", vec![1; 8000]).await.expect("it fits");
        is_refused(create(&store, "carol", vec![1; 8000]).await);

        // Metadata also counts.
        create(&store, "dave", "").await.expect("it fits");
        assert_eq!(store.usage().await.expect("it is counted").resources, 3);

        let alices = uri();
        assert!(store.delete(&Owner::new("alice"), &alices).await.expect("it is deleted"));
        create(&store, "carol", vec![1; 8000]).await.expect("there is room at once");
        is_refused(create(&store, "alice", vec![1; 8000]).await);

        clock.advance(Duration::from_secs(61));
        create(&store, "alice", vec![1; 8000]).await.expect("the others have expired");
    }

    #[tokio::test]
    async fn uploads_count_until_they_end() {
        let store = store(&ManualClock::new());
        let upload = store.backend.begin(&Owner::new("alice"), &uri(), None).await;
        let mut upload = upload.expect("it begins");
        let block = || StoredBlock { bytes: vec![1; 10].into(), size: 15_000 };
        upload.append(block()).await.expect("it fits");

        is_refused(create(&store, "bob", vec![1; 8000]).await);

        drop(upload);
        create(&store, "bob", vec![1; 8000]).await.expect("there is room");
    }

    #[tokio::test(start_paused = true)]
    async fn announced_content_counts_once() {
        let store = store(&ManualClock::new());
        let mut upload = begin(&store, "alice").await;

        upload.reserve(15_000).await.expect("it fits");
        tokio::time::advance(2 * COUNT_TTL).await;

        create(&store, "bob", vec![1; 3000]).await.expect("there is room beside it");
        let block = StoredBlock { bytes: vec![1; 10].into(), size: 15_000 };
        upload.append(block).await.expect("it is reserved");
    }

    #[tokio::test]
    async fn announced_content_is_counted_with_the_uploads_of_other_instances() {
        let shared = unlimited(&ManualClock::new());
        let one = shared.clone().limited_to(LIMIT);
        let other = shared.limited_to(LIMIT);

        // Both instances have counted before the other one reserves anything.
        create(&one, "carol", "").await.expect("it fits");
        create(&other, "dave", "").await.expect("it fits");

        let mut first = begin(&one, "alice").await;
        first.reserve(12_000).await.expect("it fits");

        let refused = begin(&other, "bob").await.reserve(12_000).await;
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    }

    fn uri() -> ResourceUri {
        ResourceUri::parse("x:1").expect("it is a URI")
    }
}
