//! The default backend: this process's memory. It refuses content that does not fit and never
//! evicts live resources.

mod account;
mod blob;
mod reservations;
mod resources;
#[cfg(test)]
mod tests;
mod upload;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
pub(super) use blob::MemoryBlob;
use larder_identity::Owner;
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use self::{reservations::MemoryReservation, resources::Resources};
use super::{
    Backend, Change, ChangeFeed, ChangeKind, Entry, Lookup, OwnerPage, OwnerQuota, ResourceUri,
    StoreError, StoredResource, Upload, Usage, Version, quota::MAX_RESERVATIONS,
};

/// The most expired resources that are removed while the lock is held.
const SWEEP_BATCH: usize = 256;

/// The most expired resources of other owners that one request removes: more than it can create,
/// so that they do not accumulate where nothing runs [`MemoryBackend::maintain`].
const OTHERS_PER_REQUEST: usize = 16;

/// The most that the memory backend stores, counted as for the quota of an owner.
#[derive(Debug, Clone)]
pub struct MemoryLimits {
    /// Bytes of all owners.
    pub bytes: u64,
    /// The quota of each owner.
    pub per_owner: OwnerQuota,
}

impl Default for MemoryLimits {
    /// 384 MiB in total and 256 MiB for each owner, for a process that serves requests with 1 GiB
    /// of memory.
    fn default() -> Self {
        let per_owner = OwnerQuota { bytes: 256 << 20, ..OwnerQuota::default() };
        Self { bytes: 384 << 20, per_owner }
    }
}

/// Stores resources in memory.
#[derive(Debug)]
pub struct MemoryBackend {
    inner: Arc<MemoryState>,
}

/// The state that the backend shares with its uploads.
#[derive(Debug)]
struct MemoryState {
    clock: Arc<dyn Clock>,
    limits: MemoryLimits,
    feed: ChangeFeed,
    /// The lock is held for a few map operations and never across an await.
    resources: Mutex<Resources>,
    /// Wakes [`MemoryBackend::maintain`] when the next expiry moves forward.
    earlier_expiry: Notify,
}

impl MemoryBackend {
    /// An empty backend.
    pub fn new(clock: Arc<dyn Clock>, limits: MemoryLimits) -> Self {
        let inner = MemoryState {
            clock,
            limits,
            feed: ChangeFeed::new(),
            resources: Mutex::default(),
            earlier_expiry: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl MemoryState {
    fn lock(&self) -> MutexGuard<'_, Resources> {
        self.resources.lock()
    }

    /// Locks the resources after a sweep: all expired resources and reservations of `owner` are
    /// removed, so that they are neither found nor counted, and a few of other owners.
    fn live_resources(&self, owner: &Owner) -> MutexGuard<'_, Resources> {
        let mut resources = self.some_swept();

        loop {
            let expired = resources.remove_expired_of(owner, self.clock.now(), SWEEP_BATCH);
            self.publish_expired(&expired);
            if expired.len() < SWEEP_BATCH {
                resources.reservations.end_expired_of(owner, self.clock.now());
                return resources;
            }

            // Other requests take the lock between the batches.
            drop(resources);
            resources = self.lock();
        }
    }

    /// Locks the resources as [`live_resources`](Self::live_resources), after removing as many
    /// expired resources of other owners as `bytes` need to fit into the limit of all owners.
    fn live_resources_with_room(&self, owner: &Owner, bytes: u64) -> MutexGuard<'_, Resources> {
        loop {
            let mut resources = self.live_resources(owner);
            if resources.has_room(bytes, &self.limits) || !self.sweep(&mut resources, SWEEP_BATCH) {
                return resources;
            }
        }
    }

    /// Locks the resources after removing a few expired ones of any owners.
    fn some_swept(&self) -> MutexGuard<'_, Resources> {
        let mut resources = self.lock();
        self.sweep(&mut resources, OTHERS_PER_REQUEST);
        resources
    }

    /// Removes up to `limit` expired resources, and ends as many reservations. Returns whether more
    /// may have expired.
    fn sweep(&self, resources: &mut Resources, limit: usize) -> bool {
        self.sweep_at(self.clock.now(), resources, limit)
    }

    /// Removes and ends as [`sweep`](Self::sweep) what has expired at `now`.
    fn sweep_at(&self, now: Timestamp, resources: &mut Resources, limit: usize) -> bool {
        let expired = resources.remove_expired(now, limit);
        resources.forget_one_idle_owner();
        self.publish_expired(&expired);

        let ended = resources.end_reservations(now, limit);
        expired.len() == limit || ended == limit
    }

    fn publish_expired(&self, expired: &[Arc<Entry>]) {
        for entry in expired {
            self.publish(&entry.owner, &entry.uri, ChangeKind::Expired);
        }
    }

    /// Publishes a change. The caller holds the lock, so that changes are published in the order in
    /// which they are made.
    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        self.feed.publish(Change { owner: owner.clone(), uri: uri.clone(), kind, id: None });
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn shared_location(&self) -> Option<String> {
        None
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let reservation = reservation.map(str::to_owned);
        Ok(Box::new(upload::MemoryUpload::new(inner, owner.clone(), uri.clone(), reservation)))
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        let MemoryState { clock, limits, earlier_expiry, .. } = &*self.inner;
        let mut resources = self.inner.live_resources_with_room(owner, bytes);

        let until = clock.now().saturating_add(ttl);

        let before = resources.reservations.take(owner, id);
        let is_new = before.is_none();
        if is_new && resources.reservations.count(owner) >= MAX_RESERVATIONS {
            return Err(limits.per_owner.out_of_reservations());
        }

        let mut reserved = match before {
            Some(MemoryReservation { charge, until: before }) => {
                MemoryReservation { charge, until: before.max(until) }
            }
            None => MemoryReservation { charge: resources.charge(owner), until },
        };

        let before = reserved.charge.bytes();
        let missing = bytes.saturating_sub(before);
        let grown = resources.reserve(owner, uri, &mut reserved.charge, missing, limits);

        if grown.is_ok() || !is_new {
            resources.reservations.insert(owner, id, reserved);
        } else {
            drop(reserved);
            resources.forget_if_idle(owner);
        }

        if resources.next_expiry() == Some(until) {
            earlier_expiry.notify_one();
        }

        grown.map(|()| before)
    }

    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError> {
        let mut resources = self.inner.live_resources(owner);
        if let Some(mut reserved) = resources.reservations.take(owner, id) {
            reserved.charge.shrink_to(keep);
            if keep > 0 {
                resources.reservations.insert(owner, id, reserved);
            }
        }

        resources.forget_if_idle(owner);
        Ok(())
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let resources = self.inner.live_resources(owner);
        if let Some(found) = resources.get(owner, uri) {
            return Ok(Lookup::Live(found.clone()));
        }

        Ok(resources.expired_at(owner, uri).map_or(Lookup::Missing, Lookup::Expired))
    }

    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        Ok(self.inner.live_resources(owner).revisions(owner, uri))
    }

    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        let mut resources = self.inner.live_resources(owner);

        let current = resources.get(owner, uri).map(|found| Version::from(&*found.entry));
        if version.is_some() && current != version {
            return Ok(false);
        }

        let removed = resources.remove(owner, uri).is_some();
        if removed {
            self.inner.publish(owner, uri, ChangeKind::Deleted);
        }
        Ok(removed)
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        Ok(self.inner.live_resources(owner).page(owner, prefix, after, limit))
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        Ok(self.inner.some_swept().usage())
    }

    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        Ok(self.inner.some_swept().owners(after, limit))
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        Ok(self.inner.live_resources(owner).usage_of(owner))
    }

    fn quota(&self) -> OwnerQuota {
        self.inner.limits.per_owner
    }

    async fn maintain(&self) {
        loop {
            let earlier_expiry = self.inner.earlier_expiry.notified();
            while self.inner.sweep(&mut self.inner.lock(), SWEEP_BATCH) {
                tokio::task::yield_now().await;
            }

            let next = self.inner.lock().next_expiry();
            let due = async {
                match next {
                    Some(next) => self.inner.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };

            tokio::select! {
                () = due => {}
                () = earlier_expiry => {}
            }
        }
    }
}
