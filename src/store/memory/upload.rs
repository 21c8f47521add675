//! Uploads into memory. Their bytes count towards the quota from the first block.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use super::Inner;
use crate::{
    auth::Owner,
    store::{
        Blob, ChangeKind, Committed, Draft, ResourceUri, StoreError, StoredBlock, StoredResource,
        Upload,
    },
};

/// The blocks of one revision. Readers share ownership, so a read in progress
/// completes after the resource is removed.
#[derive(Debug)]
pub(in crate::store) struct MemoryBlob {
    /// The stored blocks with their offsets in the blob.
    pub(in crate::store) blocks: Vec<(u64, Bytes)>,
}

#[async_trait]
impl Blob for MemoryBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let next = self.blocks.partition_point(|(offset, _)| *offset <= range.start);
        let Some((offset, block)) = next.checked_sub(1).and_then(|i| self.blocks.get(i)) else {
            return Ok(Bytes::new());
        };
        let index = |position: u64| {
            usize::try_from(position - offset).map_or(block.len(), |index| index.min(block.len()))
        };
        Ok(block.slice(index(range.start)..index(range.end)))
    }
}

pub(super) struct MemoryUpload {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    blocks: Vec<(u64, Bytes)>,
    /// How many bytes are stored.
    stored: u64,
    /// Bytes reserved in the quota; released on drop unless committed.
    reserved: u64,
}

impl MemoryUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: ResourceUri) -> Self {
        Self { inner, owner, uri, blocks: Vec::new(), stored: 0, reserved: 0 }
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
        let blob = Arc::new(MemoryBlob { blocks: std::mem::take(&mut self.blocks) });
        resources.insert(StoredResource { entry: Arc::clone(&entry), blob }, revisions);
        // From here on the entry accounts for the bytes.
        self.reserved = 0;
        self.inner.publish(&owner, &uri, change);
        if resources.next_expiry() == Some(entry.expires) {
            self.inner.earlier_expiry.notify_one();
        }
        Ok(Committed { entry, change })
    }
}

#[async_trait]
impl Upload for MemoryUpload {
    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        let mut resources = self.inner.live_resources();
        resources.reserve(&self.owner, &self.uri, block.size, &self.inner.limits)?;
        drop(resources);
        self.reserved += block.size;
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
        if self.reserved > 0 {
            self.inner.lock().release(&self.owner, self.reserved);
        }
    }
}
