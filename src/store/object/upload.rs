//! Content on its way into an object: at once if it is small, in parts if not.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{PutPayload, WriteMultipart, path::Path};
use tokio::runtime::Handle;

use super::{Inner, layout};
use crate::{
    auth::Owner,
    store::{Committed, Draft, Packed, ResourceUri, StoreError, Upload},
};

/// S3 takes parts from 5 MiB on, and no more than 10,000 of them.
const PART: usize = 8 << 20;

/// How many parts are on their way at once.
const PARTS: usize = 2;

pub(super) struct ObjectUpload {
    inner: Arc<Inner>,
    owner: Owner,
    /// Of the content; of no other ever.
    id: String,
    path: Path,
    size: u64,
    /// What is not sent yet, and how much that is.
    held: Vec<Bytes>,
    held_bytes: usize,
    parts: Option<WriteMultipart>,
    /// Whether it lies there as a whole, and nobody's.
    whole: bool,
}

impl ObjectUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, uri: &ResourceUri) -> Self {
        let id = inner.random.id();
        let path = layout::content(&layout::resource(&owner, uri), &id);
        let (held, held_bytes) = (Vec::new(), 0);
        Self { inner, owner, id, path, size: 0, held, held_bytes, parts: None, whole: false }
    }

    /// Sends what is held, as soon as few enough parts are on their way.
    async fn send(&mut self) -> Result<(), StoreError> {
        let objects = &self.inner.objects;
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(objects.put_parts(&self.path, PART).await?),
        };
        parts.wait_for_capacity(PARTS).await.map_err(|error| objects.failed(error))?;
        self.held.drain(..).for_each(|block| parts.put(block));
        self.held_bytes = 0;
        Ok(())
    }

    /// Makes an object of all that has come.
    async fn finish(&mut self) -> Result<(), StoreError> {
        if self.parts.is_some() {
            self.send().await?;
            if let Some(parts) = self.parts.take() {
                parts.finish().await.map_err(|error| self.inner.objects.failed(error))?;
                self.whole = true;
            }
        } else if self.held_bytes > 0 {
            let payload: PutPayload = self.held.drain(..).collect();
            self.inner.objects.put(&self.path, payload).await?;
            self.whole = true;
        }
        Ok(())
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        // The commit counts exactly; this is so that what can never fit is not sent first.
        let most = self.inner.limits.bytes_per_owner;
        if self.size + block.size > most {
            return Err(StoreError::Full(format!(
                "The content has more bytes than all your resources may have together ({most}). Store less."
            )));
        }
        self.size += block.size;
        self.held_bytes += block.bytes.len();
        self.held.push(block.bytes);
        if self.held_bytes >= PART { self.send().await } else { Ok(()) }
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "content stays with whom it was begun for");
        // First, so that nothing lies here that nobody will look at.
        self.inner.note(&draft).await?;
        self.finish().await?;
        let inner = Arc::clone(&self.inner);
        // From here on it may be somebody's resource, also where no answer comes.
        let whole = std::mem::take(&mut self.whole);
        let committed = inner.put(draft, self.id.clone()).await;
        let refused = matches!(committed, Err(StoreError::NotFound { .. } | StoreError::Full(_)));
        self.whole = whole && refused;
        committed
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(parts) = self.parts.take() {
            runtime.spawn(async move {
                if let Err(error) = parts.abort().await {
                    tracing::debug!(%error, "parts that were given up are left behind");
                }
            });
        } else if self.whole {
            let (inner, path) = (Arc::clone(&self.inner), self.path.clone());
            runtime.spawn(async move {
                if let Err(error) = inner.objects.remove(&path).await {
                    tracing::debug!(%error, "content that was given up is left to be tidied up");
                }
            });
        }
    }
}
