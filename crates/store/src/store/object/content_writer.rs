//! [`ContentWriter`]: writes content to an object, in one request if it is small, otherwise as a
//! multipart upload. Refuses content while the disk has too little space.

use bytes::Bytes;
use object_store::{PutPayload, WriteMultipart, path::Path};
use tokio::runtime::Handle;

use super::objects::Objects;
use crate::store::{ResourceUri, StoreError};

/// The size of a part, in bytes. S3 requires at least 5 MiB and allows 10,000 parts.
pub(super) const PART_BYTES: usize = 8 << 20;

/// How many parts are sent concurrently.
const CONCURRENT_PARTS: usize = 2;

/// Writes one object. Removes the object when dropped, unless [`keep`](Self::keep) was
/// called.
pub(in crate::store) struct ContentWriter {
    objects: Objects,
    path: Path,

    /// The object whose content is copied.
    source: Option<Path>,
    /// Content that has not been sent.
    buffer: Vec<Bytes>,
    buffered_bytes: usize,
    multipart: Option<WriteMultipart>,

    /// Whether the complete object exists and is to be removed on drop.
    remove_on_drop: bool,
}

impl ContentWriter {
    pub(in crate::store) fn new(objects: Objects, path: Path) -> Self {
        Self {
            objects,
            path,
            source: None,
            buffer: Vec::new(),
            buffered_bytes: 0,
            multipart: None,
            remove_on_drop: false,
        }
    }

    /// Takes the content of another object of the same location, which is copied at the end.
    pub(in crate::store) fn copy(&mut self, source: Path) {
        self.source = Some(source);
    }

    pub(in crate::store) async fn append(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.buffered_bytes += bytes.len();
        self.buffer.push(bytes);
        if self.buffered_bytes >= PART_BYTES { self.send().await } else { Ok(()) }
    }

    /// Sends the buffer as a part, after waiting for capacity.
    async fn send(&mut self) -> Result<(), StoreError> {
        self.check_disk().await?;
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            none => none.insert(self.objects.put_multipart(&self.path, PART_BYTES).await?),
        };

        multipart
            .wait_for_capacity(CONCURRENT_PARTS)
            .await
            .map_err(|error| self.objects.failed(error))?;
        self.buffer.drain(..).for_each(|block| multipart.put(block));
        self.buffered_bytes = 0;
        Ok(())
    }

    /// Refuses content while the disk has too little space. Call it before anything is
    /// written for the commit.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub(in crate::store) async fn check_disk(&mut self) -> Result<(), StoreError> {
        self.objects.check_disk().await
    }

    /// All of the content, if it has at most `max` bytes. The content is then taken from the
    /// writer, which makes no object.
    pub(super) fn take_small(&mut self, max: usize) -> Option<Bytes> {
        if self.source.is_some() || self.multipart.is_some() || self.buffered_bytes > max {
            return None;
        }

        self.buffered_bytes = 0;
        Some(self.buffer.drain(..).collect::<Vec<_>>().concat().into())
    }

    /// Completes the object. Empty content makes no object. `uri` is the resource.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the copied object has been removed meanwhile.
    pub(in crate::store) async fn finish(&mut self, uri: &ResourceUri) -> Result<(), StoreError> {
        self.check_disk().await?;

        if let Some(source) = self.source.take() {
            if !self.objects.copy_content(&source, &self.path).await? {
                return Err(StoreError::NotFound { uri: uri.clone() });
            }
            self.remove_on_drop = true;
        } else if self.multipart.is_some() {
            self.send().await?;
            if let Some(multipart) = self.multipart.take() {
                multipart.finish().await.map_err(|error| self.objects.failed(error))?;
                self.remove_on_drop = true;
            }
        } else if self.buffered_bytes > 0 {
            let payload: PutPayload = self.buffer.drain(..).collect();
            self.objects.put_content(&self.path, payload).await?;
            self.remove_on_drop = true;
        }

        Ok(())
    }

    /// Stops the removal on drop, because an entry may refer to the object from now on.
    /// Returns whether there is an object.
    pub(in crate::store) fn keep(&mut self) -> bool {
        std::mem::take(&mut self.remove_on_drop)
    }

    /// Removes the object on drop after all, because the commit was refused.
    pub(in crate::store) fn discard(&mut self, has_object: bool) {
        self.remove_on_drop = has_object;
    }
}

impl Drop for ContentWriter {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };

        if let Some(multipart) = self.multipart.take() {
            runtime.spawn(async move {
                if let Err(error) = multipart.abort().await {
                    tracing::debug!(%error, "cannot abort a multipart upload; its parts remain");
                }
            });
        } else if self.remove_on_drop {
            let objects = self.objects.clone();
            let path = self.path.clone();

            runtime.spawn(async move {
                if let Err(error) = objects.remove(&path).await {
                    tracing::debug!(%error, "cannot remove abandoned content; a sweep will");
                }
            });
        }
    }
}
