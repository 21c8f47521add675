//! The preview of a stored resource. Reads only the first and the last block.

use std::sync::Arc;

use bytes::Bytes;
use larder_records::preview::{HEAD_BYTES, Preview, Sample, TAIL_BYTES};
use larder_runtime::compute::Compute;

use super::{Kind, StoreError, StoredResource};

impl StoredResource {
    /// A preview of the resource in about `budget` bytes.
    ///
    /// # Errors
    /// [`StoreError`], if the resource cannot be read.
    pub async fn preview(&self, budget: usize) -> Result<Preview, StoreError> {
        Ok(self.preview_and_head(budget).await?.0)
    }

    /// A preview of the resource in about `budget` bytes, and the first bytes of the content.
    ///
    /// # Errors
    /// [`StoreError`], if the resource cannot be read.
    pub async fn preview_and_head(&self, budget: usize) -> Result<(Preview, Bytes), StoreError> {
        let (head, tail) = self.head_and_tail(HEAD_BYTES as u64, TAIL_BYTES as u64).await?;

        let entry = Arc::clone(&self.entry);
        let first_bytes = head.clone();
        let work = move || {
            let sample = Sample {
                mime_type: Some(&entry.mime_type),
                is_text: entry.kind == Kind::Text,
                size: entry.size,
                lines: (entry.kind == Kind::Text).then_some(entry.lines),
                head: &head,
                tail: &tail,
                value: None,
            };
            Preview::new(&sample, budget)
        };

        let owner = self.entry.owner.as_str();
        let preview = Compute::run(owner, HEAD_BYTES + TAIL_BYTES, work).done().await?;
        Ok((preview, first_bytes))
    }
}
