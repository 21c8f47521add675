//! Content on its way into memory, counted from its first byte.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use super::Inner;
use crate::{
    auth::Owner,
    store::{Blob, ChangeKind, Committed, Draft, Found, Packed, ResourceUri, StoreError, Upload},
};

/// The blocks of one revision. Readers hold it, so that what they began to
/// read stays whole after the resource has gone.
#[derive(Debug)]
pub(in crate::store) struct MemoryBlob {
    /// As they are kept, with where each begins in that.
    pub(in crate::store) blocks: Vec<(u64, Bytes)>,
}

#[async_trait]
impl Blob for MemoryBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let at = self.blocks.partition_point(|(offset, _)| *offset <= range.start);
        let Some((offset, block)) = at.checked_sub(1).and_then(|i| self.blocks.get(i)) else {
            return Ok(Bytes::new());
        };
        let clamp =
            |at: u64| usize::try_from(at - offset).map_or(block.len(), |at| at.min(block.len()));
        Ok(block.slice(clamp(range.start)..clamp(range.end)))
    }
}

pub(super) struct MemoryUpload {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    blocks: Vec<(u64, Bytes)>,
    /// How much is kept.
    stored: u64,
    /// Counted, and given back unless committed.
    reserved: u64,
}

impl MemoryUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: ResourceUri) -> Self {
        Self { inner, owner, uri, blocks: Vec::new(), stored: 0, reserved: 0 }
    }

    fn place(&mut self, draft: Draft) -> Result<Committed, StoreError> {
        let (owner, uri) = (draft.owner.clone(), draft.uri.clone());
        let mut shelves = self.inner.shelves();
        let previous = shelves.get(&owner, &uri).map(|found| Arc::clone(&found.entry));
        let missing = || StoreError::NotFound { uri: uri.clone() };
        let revisions = draft.revisions;
        let entry = Arc::new(draft.over(previous.as_deref()).ok_or_else(missing)?);
        let change = if previous.is_some() {
            ChangeKind::Updated
        } else {
            shelves.check_count(&owner, self.inner.limits.per_owner)?;
            ChangeKind::Created
        };
        let blob = Arc::new(MemoryBlob { blocks: std::mem::take(&mut self.blocks) });
        shelves.insert(Found { entry: Arc::clone(&entry), blob }, revisions);
        // From here on the entry counts for the bytes.
        self.reserved = 0;
        self.inner.publish(&owner, &uri, change);
        if shelves.next_expiry() == Some(entry.expires) {
            self.inner.sooner.notify_one();
        }
        Ok(Committed { entry, change })
    }
}

#[async_trait]
impl Upload for MemoryUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        let (mut shelves, limits) = (self.inner.shelves(), &self.inner.limits);
        shelves.reserve(&self.owner, &self.uri, block.size, limits)?;
        drop(shelves);
        self.reserved += block.size;
        let begin = self.stored;
        self.stored += block.bytes.len() as u64;
        self.blocks.push((begin, block.bytes));
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        self.place(draft)
    }
}

impl Drop for MemoryUpload {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.inner.lock().release(&self.owner, self.reserved);
        }
    }
}
