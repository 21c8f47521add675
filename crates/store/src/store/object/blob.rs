//! The content of one revision, read from its object.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;

use super::objects::Objects;
use crate::store::{Blob, ResourceUri, StoreError};

/// How many bytes of content one read fetches: about as many as S3 transfers in the time of
/// one request's latency.
const READ_AHEAD: u64 = 1 << 20;

/// The content of one revision. The path is never reused for other content.
pub(in crate::store) struct ObjectBlob {
    pub(in crate::store) objects: Objects,
    pub(in crate::store) path: Path,
    pub(in crate::store) uri: ResourceUri,
}

#[async_trait]
impl Blob for ObjectBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }

        let len = range.end - range.start;
        match self.objects.range(&self.path, range).await? {
            Some(bytes) if bytes.len() as u64 == len => Ok(bytes),
            Some(bytes) => {
                let source = format!("the object has {} of {len} bytes", bytes.len()).into();
                Err(StoreError::Corrupt { uri: self.uri.clone(), source })
            }
            // The resource expired, or was replaced or deleted longer than the grace period ago.
            None => Err(StoreError::NotFound { uri: self.uri.clone() }),
        }
    }

    fn read_ahead(&self) -> u64 {
        READ_AHEAD
    }
}
