//! Uploads into memory. Their bytes count towards the quota from the first block.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;

use super::{
    MemoryState, OTHERS_PER_REQUEST, account::Charge, blob::MemoryBlob,
    reservations::MemoryReservation,
};
use crate::store::{
    ChangeKind, Committed, Draft, ResourceUri, StoreError, StoredBlock, StoredResource, Upload,
};

/// An upload of content into memory.
pub(super) struct MemoryUpload {
    inner: Arc<MemoryState>,
    owner: Owner,
    uri: ResourceUri,
    blocks: Vec<(u64, Bytes)>,

    /// The length of the content in bytes, as stored.
    stored: u64,
    /// The length of the content in bytes, uncompressed.
    arrived: u64,
    /// The bytes that the upload counts by itself. `None` once it is committed.
    charge: Option<Charge>,
    /// The ID of an earlier reservation, which counts the content instead.
    reservation_id: Option<String>,
}

impl MemoryUpload {
    pub(super) fn new(
        inner: Arc<MemoryState>,
        owner: Owner,
        uri: ResourceUri,
        reservation_id: Option<String>,
    ) -> Self {
        let charge = Some(inner.lock().charge(&owner));
        Self {
            inner,
            owner,
            uri,
            blocks: Vec::new(),
            stored: 0,
            arrived: 0,
            charge,
            reservation_id,
        }
    }

    /// Makes sure that at least `bytes` are counted.
    fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        let Some(charge) = self.charge.as_mut().filter(|_| self.reservation_id.is_none()) else {
            return Ok(());
        };

        let missing = bytes.saturating_sub(charge.bytes());
        let mut resources = self.inner.live_resources_with_room(&self.owner, missing);
        resources.reserve(&self.owner, &self.uri, charge, missing, &self.inner.limits)
    }

    fn insert(&mut self, draft: Draft) -> Result<Committed, StoreError> {
        let owner = draft.owner.clone();
        let uri = draft.uri.clone();

        // Read before the sweep, so no entry that it returns has expired at `now`.
        let now = self.inner.clock.now();
        let mut resources = self.inner.live_resources(&owner);

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

        let mut charge = self.charge.take().ok_or_else(missing)?;
        let reservation_id = self.reservation_id.as_deref();
        let named =
            reservation_id.and_then(|id| Some((id, resources.reservations.take(&owner, id)?)));
        let until = named.map(|(id, MemoryReservation { charge: reserved, until })| {
            charge = reserved;
            (id, until)
        });

        // Metadata of resources are about equally long, so few removals make room for them.
        let metadata = entry.counted_bytes().saturating_sub(charge.bytes());
        while !resources.has_room(metadata, &self.inner.limits)
            && self.inner.sweep_at(now, &mut resources, OTHERS_PER_REQUEST)
        {}

        let grown = resources.reserve(&owner, &uri, &mut charge, metadata, &self.inner.limits);
        if let Err(full) = grown {
            if let Some((id, until)) = until {
                resources.reservations.insert(&owner, id, MemoryReservation { charge, until });
            }
            return Err(full);
        }

        charge.shrink_to(entry.counted_bytes());

        let blocks = std::mem::take(&mut self.blocks);
        let blob = MemoryBlob::reserved(uri.clone(), blocks, charge);
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
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.cover(bytes)
    }

    fn reserved(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::bytes)
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let blob: &dyn Any = &*source.blob;
        let Some(blob) = blob.downcast_ref::<MemoryBlob>() else { return Ok(false) };
        // Taken before bytes are counted: to make room for them may free the source.
        let Some(blocks) = blob.counted_blocks()? else { return Ok(false) };

        self.cover(source.entry.size)?;
        self.arrived = source.entry.size;
        self.stored = source.entry.stored_size();
        self.blocks = blocks;
        Ok(true)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.arrived += block.size;
        self.cover(self.arrived)?;

        let offset = self.stored;
        self.stored += block.bytes.len() as u64;
        self.blocks.push((offset, exact(block)));
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        self.insert(draft)
    }
}

/// The bytes of a block in an allocation of their size. An uncompressed block is a slice of the
/// buffer in which it arrived, and would keep all of that buffer in memory, which no limit counts.
fn exact(block: StoredBlock) -> Bytes {
    let is_compressed = (block.bytes.len() as u64) < block.size;
    if is_compressed { block.bytes } else { Bytes::copy_from_slice(&block.bytes) }
}

impl Drop for MemoryUpload {
    fn drop(&mut self) {
        drop(self.charge.take());
        self.inner.lock().forget_if_idle(&self.owner);
    }
}
