//! The interface of a storage backend. It is small: [`Store`](super::Store) does once what all
//! backends need.

use std::{any::Any, fmt, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    ChangeFeed, ChangeKind, Draft, Entry, OwnerPage, OwnerQuota, ResourceUri, StoreError,
    StoredBlock,
};

/// Stores resources. A backend removes expired resources, enforces quotas, and
/// publishes each change once on its feed.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// The backend's name in `store.url` and in errors: `memory`, `redis`,
    /// `file`, `s3`, `gs` or `az`.
    fn name(&self) -> &'static str;

    /// The location of the data, without credentials, where several processes
    /// may share it; all of them return the same string. `None` where only this process
    /// uses the data.
    fn shared_location(&self) -> Option<String>;

    /// The feed on which this backend publishes changes.
    fn feed(&self) -> &ChangeFeed;

    /// Begins an upload for a resource. Dropping the upload discards it. With the ID of a
    /// [reservation](Self::reserve) that counts all of its content, the upload counts no further
    /// bytes, and its commit ends the reservation.
    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError>;

    /// Counts at least `bytes` towards the quota of the owner, for `ttl` at least, because content
    /// for `uri` will arrive in several requests. Atomic, on all instances together. Extends the
    /// reservation of the same ID, if there is one, and returns the bytes that it had before.
    ///
    /// # Errors
    /// [`StoreError::Full`]; the reservation is then unchanged.
    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError>;

    /// Reduces a reservation to `keep` bytes; 0 ends it. A missing reservation is no error.
    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError>;

    /// Looks up the resource.
    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError>;

    /// The stored revisions of a live resource, oldest first and the current revision
    /// last; empty where there is no such resource.
    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError>;

    /// Removes the resource; with a version, only if the resource has that version. Returns
    /// whether it was removed.
    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError>;

    /// The time by the backend's own clock; `None` if the backend uses the clock of this process.
    /// Does not wait.
    fn now(&self) -> Option<Timestamp> {
        None
    }

    /// Up to `limit` live resources of the owner whose URI starts with `prefix`
    /// and sorts after `after`, in byte order of the URI. Reads no content.
    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError>;

    /// The usage of all owners together. Metrics call this every few seconds,
    /// so its cost must not grow with the number of resources. Resources that
    /// have just expired may still be counted.
    async fn usage(&self) -> Result<Usage, StoreError>;

    /// A page of about `limit` owners, in any order. `after` is [`OwnerPage::next`] of the page
    /// before. All pages together list each owner who had a resource all the while; they may
    /// list an owner twice, and owners whose resources are gone.
    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError>;

    /// The usage of this owner. Resources that have just expired, and uploads, may be
    /// counted.
    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError>;

    /// The quota of each owner.
    fn quota(&self) -> OwnerQuota;

    /// The space on the disk where content is stored, if it is on a disk that this
    /// process can measure. Cheap enough for each upload.
    async fn disk(&self) -> Option<DiskSpace> {
        None
    }

    /// Runs background work, such as removing expired resources that nobody
    /// requests, until the future is dropped.
    async fn maintain(&self);
}

/// Identifies one write to a URI, also across deletion and creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// When the resource was created.
    pub created: Timestamp,
    /// The revision that the write made.
    pub revision: u64,
}

impl From<&Entry> for Version {
    fn from(entry: &Entry) -> Self {
        Self { created: entry.created, revision: entry.revision }
    }
}

/// The amount of stored data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of live resources.
    pub resources: u64,
    /// Bytes of their content, before compression.
    pub bytes: u64,
    /// Bytes that uploads in progress have reserved. Reservations that have just ended may still
    /// be counted. Known only for all owners together.
    pub reserved: u64,
}

/// The space on the disk of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Free bytes, without the reserve that the store keeps on the disk.
    pub free_bytes: u64,
    /// The size of the reserve, in bytes.
    pub reserve_bytes: u64,
    /// Whether there is too little space for content: less than the size of the reserve, or
    /// the reserve itself is in use.
    pub is_low: bool,
}

impl DiskSpace {
    /// The default size of the reserve: 16 MiB.
    pub const DEFAULT_RESERVE_BYTES: u64 = 16 << 20;

    /// Refuses content while there is too little space for it.
    ///
    /// # Errors
    /// [`StoreError::Full`], which names the setting.
    pub fn check(&self) -> Result<(), StoreError> {
        if !self.is_low {
            return Ok(());
        }

        Err(StoreError::Full(format!(
            "The disk of the store is full: less than {} bytes are free (store.disk_reserve_bytes). Delete resources, or wait until some expire.",
            self.reserve_bytes
        )))
    }
}

/// An upload of content.
#[async_trait]
pub trait Upload: Send {
    /// Counts `bytes` in total towards the quota of the owner before they arrive, until the
    /// upload ends. Backends may leave up to a mebibyte to the commit.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        let _ = bytes;
        Ok(())
    }

    /// The bytes of this upload that [`Usage::reserved`] includes.
    fn reserved(&self) -> u64 {
        0
    }

    /// Takes all content of `source` instead of blocks, if the backend can copy it, or refer to
    /// it, without its bytes. Returns whether it did; if not, the blocks follow. The draft then has
    /// the size, the digest, the block table and the record index of the source.
    ///
    /// A backend finds out by the type of [`StoredResource::blob`] whether the content is its own.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the content has been removed meanwhile; [`StoreError::Full`].
    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let _ = source;
        Ok(false)
    }

    /// Stores the next block as it is. Quotas count its uncompressed size, so
    /// that they mean the same in every backend.
    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError>;

    /// Makes the content readable under its URI, all or nothing, and replaces
    /// the previous resource. The backend completes the draft with
    /// [`Draft::apply_to`], because only the backend knows the predecessor at that moment.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`] where the draft is an
    /// update and there is no predecessor; [`StoreError::Full`].
    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError>;

    /// Removes the uploaded content and releases its quota before it returns, where
    /// dropping the upload does both in the background.
    async fn discard(self: Box<Self>) {}
}

/// Stored bytes, read by range. A memory blob stays readable as long as the
/// handle lives; another blob until the resource is removed.
#[async_trait]
pub trait Blob: Any + Send + Sync {
    /// The stored bytes of the range. A range spans several blocks only where
    /// the reader needs all of them, and then has at most
    /// [`read_ahead`](Self::read_ahead) bytes.
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError>;

    /// The bytes that one request fetches when all content is read; at least one
    /// block is fetched. A backend with a higher latency needs a larger value. 0 by
    /// default.
    fn read_ahead(&self) -> u64 {
        0
    }
}

/// The result of looking up a resource.
pub enum Lookup {
    /// The resource is live.
    Live(StoredResource),
    /// The resource expired at this time, as far as the backend remembers.
    Expired(Timestamp),
    /// There is no such resource.
    Missing,
}

/// A revision of a live resource: its entry and a handle to its bytes.
#[derive(Clone)]
pub struct StoredResource {
    /// The metadata.
    pub entry: Arc<Entry>,
    /// The content.
    pub blob: Arc<dyn Blob>,
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The entry as stored.
    pub entry: Arc<Entry>,
    /// [`ChangeKind::Created`] or [`ChangeKind::Updated`].
    pub change: ChangeKind,
}

impl StoredResource {
    /// Turns this revision into an earlier revision of `current`: all revisions of a
    /// resource expire together, and end with the same session.
    pub(super) fn earlier_than(self, current: &Entry) -> Self {
        let entry = Entry {
            expires: current.expires,
            session: current.session.clone(),
            ..Entry::clone(&self.entry)
        };
        Self { entry: Arc::new(entry), ..self }
    }
}
