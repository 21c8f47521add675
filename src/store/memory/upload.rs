//! Uploads into memory. Their bytes count towards the quota from the first block.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Inner, account::Reservation, blob::MemoryBlob};
use crate::{
    auth::Owner,
    store::{
        ChangeKind, Committed, Draft, ResourceUri, StoreError, StoredBlock, StoredResource, Upload,
    },
};

/// An upload of content into memory.
pub(super) struct MemoryUpload {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    blocks: Vec<(u64, Bytes)>,
    /// How many bytes are stored.
    stored: u64,
    /// What the upload counts. `None` once it is committed.
    reservation: Option<Reservation>,
}

impl MemoryUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: ResourceUri) -> Self {
        let reservation = Some(inner.lock().reservation(&owner));
        Self { inner, owner, uri, blocks: Vec::new(), stored: 0, reservation }
    }

    fn insert(&mut self, draft: Draft) -> Result<Committed, StoreError> {
        let (owner, uri) = (draft.owner.clone(), draft.uri.clone());
        let mut resources = self.inner.live_resources();
        let previous = resources.get(&owner, &uri).map(|found| Arc::clone(&found.entry));
        let missing = || StoreError::NotFound { uri: uri.clone() };
        let revisions = draft.revisions;
        let entry = Arc::new(draft.apply_to(previous.as_deref()).ok_or_else(missing)?);
        let change = if previous.is_some() {
            ChangeKind::Updated
        } else {
            resources.check_count(&owner, self.inner.limits.per_owner)?;
            ChangeKind::Created
        };
        let mut reservation = self.reservation.take().ok_or_else(missing)?;
        let metadata = entry.counted_bytes().saturating_sub(reservation.bytes());
        resources.reserve(&owner, &uri, &mut reservation, metadata, &self.inner.limits)?;
        let blocks = std::mem::take(&mut self.blocks);
        let blob = MemoryBlob::reserved(uri.clone(), blocks, reservation);
        let found =
            StoredResource { entry: Arc::clone(&entry), blob: Arc::<MemoryBlob>::clone(&blob) };
        resources.insert(found, blob, revisions);
        self.inner.publish(&owner, &uri, change);
        if resources.next_expiry() == Some(entry.expires) {
            self.inner.earlier_expiry.notify_one();
        }
        Ok(Committed { entry, change })
    }
}

#[async_trait]
impl Upload for MemoryUpload {
    async fn check_room(&mut self, bytes: u64) -> Result<(), StoreError> {
        let mut resources = self.inner.live_resources();
        // Counts until the end of this function only.
        let mut reservation = resources.reservation(&self.owner);
        resources.reserve(&self.owner, &self.uri, &mut reservation, bytes, &self.inner.limits)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        if let Some(reservation) = &mut self.reservation {
            let mut resources = self.inner.live_resources();
            let limits = &self.inner.limits;
            resources.reserve(&self.owner, &self.uri, reservation, block.size, limits)?;
        }
        let offset = self.stored;
        self.stored += block.bytes.len() as u64;
        self.blocks.push((offset, block.bytes));
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        self.insert(draft)
    }
}

impl Drop for MemoryUpload {
    fn drop(&mut self) {
        drop(self.reservation.take());
        self.inner.lock().forget_if_idle(&self.owner);
    }
}
