//! Content that belongs to no store, looked at as if it did: what a static
//! resource gives, for the tools that read by window.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use super::{
    Committed, Content, Details, Draft, Found, Packed, Placement, ResourceUri, StoreError, Upload,
    blocks::{BLOCK_BYTES, BlockWriter},
    memory::MemoryBlob,
    packing::Packing,
};
use crate::{auth::Owner, clock::Timestamp};

impl Found {
    /// Content as a resource of that name, held in memory by this value alone.
    ///
    /// # Errors
    /// [`StoreError::NotText`], [`StoreError::Input`].
    pub async fn detached(
        uri: ResourceUri,
        owner: Owner,
        content: Content,
        details: Details,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        Self::loose_in_blocks(uri, owner, content, details, now, BLOCK_BYTES).await
    }

    /// With blocks of another size, so that in tests little content has many of them.
    pub(super) async fn loose_in_blocks(
        uri: ResourceUri,
        owner: Owner,
        content: Content,
        details: Details,
        now: Timestamp,
        block_bytes: usize,
    ) -> Result<Self, StoreError> {
        let mime_type = details.mime_type.unwrap_or_else(|| content.mime_type().to_owned());
        let (kind, pieces) = content.into_parts();
        let blocks = Arc::new(Mutex::new(Vec::new()));
        let upload = Box::new(Detached { blocks: Arc::clone(&blocks), at: 0 });
        let mut writer = BlockWriter::with_block_size(kind, upload, Packing::Never, block_bytes);
        writer.write_all(pieces).await?;
        let (_, measured) = writer.finish().await?;
        let draft = Draft {
            uri: uri.clone(),
            owner,
            kind,
            size: measured.size,
            lines: measured.lines,
            sha256: measured.sha256,
            blocks: measured.blocks.into(),
            now,
            revisions: 1,
            placement: Placement::Create {
                name: details.name.unwrap_or_else(|| uri.as_str().to_owned()),
                title: details.title,
                description: details.description,
                mime_type,
                ttl: Duration::MAX,
                session: None,
            },
        };
        let entry = draft.over(None).ok_or(StoreError::NotFound { uri })?;
        let blocks = std::mem::take(&mut *blocks.lock());
        Ok(Self { entry: Arc::new(entry), blob: Arc::new(MemoryBlob { blocks }) })
    }
}

struct Detached {
    blocks: Arc<Mutex<Vec<(u64, Bytes)>>>,
    at: u64,
}

#[async_trait]
impl Upload for Detached {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        let blocks = &mut *self.blocks.lock();
        blocks.push((self.at, block.bytes));
        self.at += block.size;
        Ok(())
    }

    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        Err(StoreError::NotFound { uri: draft.uri })
    }
}
