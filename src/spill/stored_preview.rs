//! The preview of a stored resource. Reads only the first and the last block.

use crate::{
    preview::{HEAD_BYTES, Preview, Sample, TAIL_BYTES},
    store::{Kind, StoreError, StoredResource},
};

impl Preview {
    /// A preview of the resource in about `budget` bytes.
    ///
    /// # Errors
    /// If the resource cannot be read.
    pub async fn from_stored(found: &StoredResource, budget: usize) -> Result<Self, StoreError> {
        let entry = &found.entry;
        let (head, tail) = found.head_and_tail(HEAD_BYTES as u64, TAIL_BYTES as u64).await?;
        let sample = Sample {
            mime_type: Some(&entry.mime_type),
            is_text: entry.kind == Kind::Text,
            size: entry.size,
            lines: (entry.kind == Kind::Text).then_some(entry.lines),
            head: &head,
            tail: &tail,
            value: None,
        };
        Ok(Self::new(&sample, budget))
    }
}
