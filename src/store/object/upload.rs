//! An upload: writes content to its own object, then commits the entry.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    Inner,
    content_writer::{ContentWriter, PART_BYTES},
    kept::Uploading,
    layout,
};
use crate::{
    auth::Owner,
    store::{Committed, Draft, ResourceUri, StoreError, StoredBlock, Upload},
};

/// An upload of content into an object.
pub(super) struct ObjectUpload {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    /// The ID of the content, never reused.
    id: String,
    uploading: Uploading,
    /// How many bytes may arrive until the quota is checked again.
    unchecked: u64,
    writer: ContentWriter,
}

impl ObjectUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: &ResourceUri) -> Self {
        let id = inner.random.id();
        let path = layout::content(&layout::resource(&owner, uri), &id);
        let writer = ContentWriter::new(inner.objects.clone(), path);
        let uploading = inner.uploads.begin(&owner);
        Self { inner, owner, uri: uri.clone(), id, uploading, unchecked: PART_BYTES as u64, writer }
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn check_room(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.inner.quota.check_upload(bytes)?;
        let mut uploading = self.inner.uploads.begin(&self.owner);
        uploading.grow(bytes);
        self.inner.check_room(&self.owner, &self.uri, bytes).await?;
        self.writer.check_disk().await
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        // Refuses early what cannot fit. The commit checks the quota exactly.
        self.uploading.grow(block.size);
        self.inner.quota.check_upload(self.uploading.bytes())?;
        self.unchecked = self.unchecked.saturating_sub(block.size);
        if self.unchecked == 0 {
            self.inner.check_room(&self.owner, &self.uri, self.uploading.bytes()).await?;
            self.unchecked = PART_BYTES as u64;
        }
        self.writer.append(block.bytes).await
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "an upload commits for the owner that began it");
        self.writer.check_disk().await?;
        // Scheduled before the content is complete, so that content without an entry is found.
        self.inner.schedule_expiry(&draft).await?;
        self.writer.finish().await?;
        let has_object = self.writer.keep();
        let committed = self.inner.put(draft, self.id.clone(), self.uploading.bytes()).await;
        if matches!(committed, Err(StoreError::NotFound { .. } | StoreError::Full(_))) {
            self.writer.discard(has_object);
        }
        committed
    }
}
