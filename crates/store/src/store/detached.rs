//! Detached resources: content outside the store, with the interface of a stored resource. The
//! tools that read by window use it for static resources.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use parking_lot::Mutex;

use super::{
    Committed, Content, Details, Draft, Entry, Kind, ResourceUri, StoreError, StoredBlock,
    StoredResource, Upload, WriteMode,
    blocks::{BLOCK_BYTES, BlockWriter, ContentStats},
    compression::Compression,
    memory::MemoryBlob,
};

impl StoredResource {
    /// Makes a detached resource. Its content is in memory, or stays where it is if parts of it
    /// can be read there.
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
        let Some(ranges) = content.ranges() else {
            return Self::detached_with_block_size(uri, owner, content, details, now, BLOCK_BYTES)
                .await;
        };

        let kind = content.kind();
        let mime_type = details.mime_type.as_deref().unwrap_or(content.mime_type()).to_owned();
        let table = ranges.table(&owner, content, &mime_type).await?;
        let entry = detached_entry(uri, owner, kind, &table, mime_type, details, now)?;

        Ok(Self { entry: Arc::new(entry), blob: ranges.blob })
    }

    /// Makes a detached resource with another block size, so that little content has many
    /// blocks in tests.
    pub(super) async fn detached_with_block_size(
        uri: ResourceUri,
        owner: Owner,
        content: Content,
        details: Details,
        now: Timestamp,
        block_bytes: usize,
    ) -> Result<Self, StoreError> {
        let mime_type = content.mime_type().to_owned();
        let (kind, pieces) = content.into_parts();

        let blocks = Arc::new(Mutex::new(Vec::new()));
        let upload = Box::new(CollectingUpload { blocks: Arc::clone(&blocks), stored: 0 });
        let mut writer =
            BlockWriter::with_block_size(&owner, kind, upload, Compression::Never, block_bytes);

        writer.write_all(pieces).await?;
        let (_, stats) = writer.finish().await?;

        let entry = detached_entry(uri.clone(), owner, kind, &stats, mime_type, details, now)?;

        let blocks = std::mem::take(&mut *blocks.lock());
        Ok(Self { entry: Arc::new(entry), blob: MemoryBlob::detached(uri, blocks) })
    }
}

/// The entry of a detached resource.
fn detached_entry(
    uri: ResourceUri,
    owner: Owner,
    kind: Kind,
    stats: &ContentStats,
    mime_type: String,
    details: Details,
    now: Timestamp,
) -> Result<Entry, StoreError> {
    let draft = Draft {
        uri: uri.clone(),
        owner,
        kind,
        size: stats.size,
        lines: stats.lines,
        sha256: stats.sha256.clone(),
        blocks: Arc::clone(&stats.blocks),
        records: stats.records.clone(),
        origins: Arc::default(),
        now,
        revisions: 1,
        mode: WriteMode::Create {
            name: details.name.unwrap_or_else(|| uri.as_str().to_owned()),
            title: details.title,
            description: details.description,
            mime_type: details.mime_type.unwrap_or(mime_type),
            ttl: Duration::MAX,
            session: None,
        },
    };

    draft.apply_to(None).ok_or(StoreError::NotFound { uri })
}

/// An upload that collects blocks in memory.
struct CollectingUpload {
    /// The blocks with their offsets.
    blocks: Arc<Mutex<Vec<(u64, Bytes)>>>,
    /// The offset of the next block.
    stored: u64,
}

#[async_trait]
impl Upload for CollectingUpload {
    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        let blocks = &mut *self.blocks.lock();
        blocks.push((self.stored, block.bytes));
        self.stored += block.size;
        Ok(())
    }

    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        Err(StoreError::NotFound { uri: draft.uri })
    }
}
