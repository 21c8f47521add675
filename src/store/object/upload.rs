//! Content on its way into an object, and the entry after it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Inner, layout, parts::Parts};
use crate::{
    auth::Owner,
    store::{Committed, Draft, Packed, ResourceUri, StoreError, Upload},
};

pub(super) struct ObjectUpload {
    inner: Arc<Inner>,
    owner: Owner,
    /// Of the content; of no other ever.
    id: String,
    size: u64,
    parts: Parts,
}

impl ObjectUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: &ResourceUri) -> Self {
        let id = inner.random.id();
        let path = layout::content(&layout::resource(&owner, uri), &id);
        let parts = Parts::new(inner.objects.clone(), path);
        Self { inner, owner, id, size: 0, parts }
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        // The commit counts exactly; this is so that what can never fit is not sent first.
        self.size += block.size;
        self.inner.quota.check_upload(self.size)?;
        self.parts.append(block.bytes).await
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "content stays with whom it was begun for");
        // First, so that nothing lies here that nobody will look at.
        self.inner.note(&draft).await?;
        self.parts.finish().await?;
        let whole = self.parts.give();
        let committed = self.inner.put(draft, self.id.clone()).await;
        if matches!(committed, Err(StoreError::NotFound { .. } | StoreError::Full(_))) {
            self.parts.take_back(whole);
        }
        committed
    }
}
