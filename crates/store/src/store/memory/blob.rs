//! [`MemoryBlob`]: the content of one revision in memory.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::RwLock;

use super::account::Charge;
use crate::store::{Blob, ResourceUri, StoreError};

/// The blocks of one revision. Readers share ownership, so a read in progress completes after the
/// resource is removed, unless its owner needs the room.
#[derive(Debug)]
pub(in crate::store) struct MemoryBlob {
    uri: ResourceUri,
    /// `None` after [`discard`](Self::discard).
    content: RwLock<Option<BlobContent>>,
}

#[derive(Debug)]
struct BlobContent {
    /// The stored blocks with their offsets in the blob.
    blocks: Vec<(u64, Bytes)>,
    /// The bytes that the revision counts; `None` for detached content.
    charge: Option<Charge>,
}

impl MemoryBlob {
    /// Content that no store holds and no quota counts.
    pub(in crate::store) fn detached(uri: ResourceUri, blocks: Vec<(u64, Bytes)>) -> Arc<Self> {
        Self::new(uri, blocks, None)
    }

    pub(super) fn reserved(
        uri: ResourceUri,
        blocks: Vec<(u64, Bytes)>,
        charge: Charge,
    ) -> Arc<Self> {
        Self::new(uri, blocks, Some(charge))
    }

    fn new(uri: ResourceUri, blocks: Vec<(u64, Bytes)>, charge: Option<Charge>) -> Arc<Self> {
        let content = BlobContent { blocks, charge };
        Arc::new(Self { uri, content: RwLock::new(Some(content)) })
    }

    /// The stored blocks, shared with this blob. `None` for content that no quota counts.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] after [`discard`](Self::discard).
    pub(super) fn counted_blocks(&self) -> Result<Option<Vec<(u64, Bytes)>>, StoreError> {
        let content = self.content.read();
        let Some(BlobContent { blocks, charge }) = &*content else {
            return Err(StoreError::NotFound { uri: self.uri.clone() });
        };
        Ok(charge.is_some().then(|| blocks.clone()))
    }

    /// Frees the content. Reads in progress fail.
    pub(super) fn discard(&self) {
        drop(self.content.write().take());
    }
}

#[async_trait]
impl Blob for MemoryBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let content = self.content.read();
        let Some(BlobContent { blocks, .. }) = &*content else {
            return Err(StoreError::NotFound { uri: self.uri.clone() });
        };

        let next = blocks.partition_point(|(offset, _)| *offset <= range.start);
        let Some((offset, block)) = next.checked_sub(1).and_then(|i| blocks.get(i)) else {
            return Ok(Bytes::new());
        };

        let index = |position: u64| {
            usize::try_from(position - offset).map_or(block.len(), |index| index.min(block.len()))
        };
        Ok(block.slice(index(range.start)..index(range.end)))
    }
}
