//! [`PartsUpload`]: writes an object that arrives in pieces of any size.

use async_trait::async_trait;
use bytes::BytesMut;
use futures_util::FutureExt;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path};

use super::{Head, KeyValueObjects, KeyValueStore, PART_BYTES, removed, written};

/// An upload of an object in parts, which are written as they fill.
#[derive(Debug)]
pub(super) struct PartsUpload<K> {
    objects: KeyValueObjects<K>,
    path: Path,
    /// Bytes that do not fill a part.
    rest: BytesMut,
    /// The number of full parts.
    parts: u64,
}

impl<K> PartsUpload<K> {
    /// An upload to an object whose head says that it is incomplete.
    pub(super) fn new(objects: KeyValueObjects<K>, path: Path) -> Self {
        Self { objects, path, rest: BytesMut::new(), parts: 0 }
    }
}

#[async_trait]
impl<K: KeyValueStore> MultipartUpload for PartsUpload<K> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let mut full = Vec::new();
        for bytes in &data {
            self.rest.extend_from_slice(bytes);
            while self.rest.len() >= PART_BYTES {
                full.push((self.parts, self.rest.split_to(PART_BYTES).freeze()));
                self.parts += 1;
            }
        }

        let objects = self.objects.clone();
        let path = self.path.clone();
        let writing = async move {
            for (part, bytes) in full {
                objects.put_part(&path, part, bytes).await?;
            }
            objects.renew(&path).await
        };
        writing.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let rest = std::mem::take(&mut self.rest).freeze();
        let len = self.parts * PART_BYTES as u64 + rest.len() as u64;

        if !rest.is_empty() {
            self.objects.put_part(&self.path, self.parts, rest).await?;
        }
        // A removal, which ends with the head, has taken the parts.
        if self.objects.head(&self.path).await?.is_none() {
            return Err(removed(&self.path));
        }
        self.objects.put_head(&self.path, Head::Parts(len), false).await?;
        Ok(written())
    }

    async fn abort(&mut self) -> Result<()> {
        self.objects.remove(&self.path).await
    }
}
