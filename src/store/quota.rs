//! The quota of one owner.

use super::StoreError;

/// How much one owner may store. Bytes of content are counted before
/// compression, so that a quota means the same in every backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerQuota {
    /// Bytes of content, earlier revisions included.
    pub bytes: u64,
    /// Number of resources.
    pub resources: u64,
}

impl Default for OwnerQuota {
    /// 512 MiB and 100,000 resources.
    fn default() -> Self {
        Self { bytes: 1 << 29, resources: 100_000 }
    }
}

impl OwnerQuota {
    /// Refuses content that exceeds the quota by itself, while it is uploaded.
    /// The commit counts exactly.
    pub(super) fn check_upload(&self, size: u64) -> Result<(), StoreError> {
        if size <= self.bytes {
            return Ok(());
        }
        Err(StoreError::Full(format!(
            "The content is larger than all your resources may be together ({} bytes). Store less.",
            self.bytes
        )))
    }

    /// The error for content that does not fit beside the `used` bytes.
    pub(super) fn out_of_bytes(&self, used: u64) -> StoreError {
        StoreError::Full(format!(
            "Your resources would exceed {} bytes; {used} are used. Delete some with delete_resource, or store less.",
            self.bytes
        ))
    }

    /// The error for a new resource beside `count` others.
    pub(super) fn out_of_resources(&self, count: u64) -> StoreError {
        StoreError::Full(format!(
            "You have {count} resources; at most {} are allowed. Delete some with delete_resource, or wait until some expire.",
            self.resources
        ))
    }
}
