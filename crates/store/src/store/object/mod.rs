//! Resources as objects: files in a directory, or objects in S3 and compatible
//! services.
//!
//! Objects are created and removed, never changed. An entry's name has a change
//! number that is used once, and the entry with the highest number is current.
//! [`ledger`] assigns the numbers, [`layout`] defines the paths, and [`sweep`]
//! removes what has expired.

mod blob;
mod bucket;
mod change;
mod content_writer;
mod disk;
mod due;
mod kept;
mod key_values;
mod layout;
mod ledger;
mod ledger_reservations;
mod listing;
mod local_files;
mod location;
mod objects;
mod owners;
mod reserving;
mod schedule;
mod slots;
mod stored_entry;
mod sweep;
#[cfg(test)]
pub(super) mod tests;
mod upcoming;
mod upload;
mod usage;
mod walk;

use std::{error::Error, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use larder_identity::Owner;
use larder_runtime::{
    clock::{Clock, SystemClock},
    random::Random,
};

pub(super) use self::content_writer::ContentWriter;
pub use self::key_values::{KeyValueError, KeyValueStore};
pub use self::location::{LocationError, ObjectLocation};
pub use self::slots::ObjectSlots;
pub(super) use self::{
    blob::ObjectBlob,
    due::{DueFile, DueNames, DueQueue},
    objects::Objects,
};
use self::{
    ledger::{LedgerRecord, OwnerLocks},
    schedule::SweepSchedule,
    stored_entry::{StoredContent, StoredEntry},
    upload::ObjectUpload,
    usage::TotalUsage,
};
use super::{
    Backend, Blob, ChangeFeed, DiskSpace, Lookup, OwnerPage, OwnerQuota, ResourceUri, StoreError,
    StoredResource, Upload, Usage, Version, expired::Expired, memory::MemoryBlob,
    uploads_in_progress::UploadsInProgress,
};

/// A [`Backend`] that stores resources as objects. Its feed has the changes that
/// this process makes and the expiries that this process finds.
#[derive(Debug)]
pub struct ObjectBackend {
    state: Arc<ObjectState>,
}

/// The state that the backend, its uploads and its sweeps share.
struct ObjectState {
    objects: Objects,
    clock: Arc<dyn Clock>,
    random: Random,

    quota: OwnerQuota,
    feed: ChangeFeed,
    total_usage: TotalUsage,
    /// The URL of the location, the same in all processes that share it.
    url: String,

    locks: OwnerLocks,
    uploads: UploadsInProgress,
    schedule: SweepSchedule,

    /// Resources that this process removed because they expired. The location keeps no trace of
    /// them.
    expired: Expired,
}

impl ObjectBackend {
    /// A backend over an opened location.
    pub fn new(
        location: ObjectLocation,
        clock: Arc<dyn Clock>,
        random: Random,
        quota: OwnerQuota,
    ) -> Self {
        let state = ObjectState {
            schedule: SweepSchedule::new(location.objects(), clock.now()),
            objects: location.objects,
            url: location.url,
            total_usage: TotalUsage::default(),
            clock,
            random,
            quota,
            feed: ChangeFeed::new(),
            locks: OwnerLocks::default(),
            uploads: UploadsInProgress::default(),
            expired: Expired::default(),
        };

        Self { state: Arc::new(state) }
    }

    /// A backend over a location, by the clock of the system.
    pub fn over(location: ObjectLocation, quota: OwnerQuota) -> Self {
        Self::new(location, Arc::new(SystemClock), Random::system(), quota)
    }
}

#[async_trait]
impl Backend for ObjectBackend {
    fn name(&self) -> &'static str {
        self.state.objects.name
    }

    fn shared_location(&self) -> Option<String> {
        Some(self.state.url.clone())
    }

    fn feed(&self) -> &ChangeFeed {
        &self.state.feed
    }

    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError> {
        let state = Arc::clone(&self.state);
        Ok(Box::new(ObjectUpload::new(state, owner.clone(), uri, reservation)))
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        self.state.reserve(owner, uri, id, bytes, ttl, 0).await
    }

    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError> {
        self.state.release(owner, id, keep).await
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let state = &self.state;
        let Some(current) = state.current(owner, uri).await? else {
            return Ok(state.expired.at(owner, uri).map_or(Lookup::Missing, Lookup::Expired));
        };

        let stored = current.stored?;

        if stored.entry.is_expired(state.clock.now()) {
            let at = stored.entry.expires;
            state.expire(owner, uri).await?;
            return Ok(Lookup::Expired(at));
        }

        Ok(Lookup::Live(state.found(stored)))
    }

    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.state.revisions(owner, uri).await
    }

    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        self.state.delete(owner, uri, version).await
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.state.page(owner, prefix, after, limit).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.state.usage().await
    }

    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        self.state.owners(after, limit).await
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        let mut lock = self.state.locks.lock(owner).await;
        let tail = self.state.tail(owner, &mut lock).await?;

        let LedgerRecord { resources, bytes, .. } = tail.record;
        Ok(Usage { resources, bytes, reserved: 0 })
    }

    fn quota(&self) -> OwnerQuota {
        self.state.quota
    }

    async fn disk(&self) -> Option<DiskSpace> {
        self.state.objects.disk_space().await
    }

    async fn maintain(&self) {
        self.state.sweep_on_time().await;
    }
}

impl ObjectState {
    async fn revisions(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let Some(current) = self.current(owner, uri).await? else { return Ok(Vec::new()) };
        let current = current.stored?;
        if current.entry.is_expired(self.clock.now()) {
            return Ok(Vec::new());
        }

        let resource = layout::resource(owner, uri);
        let mut revisions = Vec::new();
        for earlier in &current.past {
            match self.read_entry(&resource, earlier.number, owner, Some(uri)).await? {
                Some(Ok(earlier)) => {
                    revisions.push(self.found(earlier).earlier_than(&current.entry));
                }
                // A damaged revision does not hide the other revisions.
                Some(Err(error)) => {
                    tracing::error!(%error, source = error.source(), "skipped a damaged earlier revision");
                }
                // The revision was dropped since the current entry was read.
                None => {}
            }
        }

        revisions.push(self.found(current));
        Ok(revisions)
    }

    /// The resource of a stored entry, with a blob that reads its content.
    fn found(self: &Arc<Self>, stored: StoredEntry) -> StoredResource {
        let resource = layout::resource(&stored.entry.owner, &stored.entry.uri);
        let uri = stored.entry.uri.clone();

        let blob: Arc<dyn Blob> = match stored.content {
            StoredContent::Object(id) => Arc::new(ObjectBlob {
                objects: self.objects.clone(),
                path: layout::content(&resource, &id),
                uri,
            }),
            StoredContent::Entry { base64: bytes } => MemoryBlob::detached(uri, vec![(0, bytes)]),
        };

        StoredResource { entry: Arc::new(stored.entry), blob }
    }
}

impl fmt::Debug for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectState").field("objects", &self.objects).finish_non_exhaustive()
    }
}
