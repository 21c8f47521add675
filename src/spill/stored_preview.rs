//! The preview of a stored resource. Reads only the first and the last block.

use std::sync::Arc;

use crate::{
    compute::Compute,
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
        let entry = Arc::clone(entry);
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
            Self::new(&sample, budget)
        };
        let owner = found.entry.owner.as_str();
        Ok(Compute::run(owner, HEAD_BYTES + TAIL_BYTES, work).done().await?)
    }
}
