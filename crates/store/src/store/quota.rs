//! [`OwnerQuota`]: the amount that one owner may store.

use super::StoreError;

/// How many uploads in progress of an owner may have a reservation. The number is no setting,
/// because it bounds the cost of each change in files and S3, whose ledger records hold all
/// reservations of the owner. `limits.transfers` bounds how many uploads may send at once.
pub(super) const MAX_RESERVATIONS: u64 = 256;

/// The amount that one owner may store: content before compression, metadata and a fixed
/// amount for each revision ([`Entry::counted_bytes`](super::Entry::counted_bytes)), so that
/// a quota means the same in every backend; uploads in progress; and deleted content that the
/// backend keeps for reads that have begun, until the owner needs the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerQuota {
    /// Bytes, earlier revisions included.
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
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub(super) fn check_upload(&self, size: u64) -> Result<(), StoreError> {
        if size <= self.bytes { Ok(()) } else { Err(self.too_large()) }
    }

    /// The error for `needed` bytes that do not fit beside the `used` bytes.
    pub(super) fn out_of_bytes(&self, used: u64, needed: u64) -> StoreError {
        if needed > self.bytes {
            return self.too_large();
        }

        StoreError::Full(format!(
            "Your resources would exceed {} bytes; {used} are used, metadata and uploads in progress included. Delete some with delete_resource, or store less.",
            self.bytes
        ))
    }

    fn too_large(&self) -> StoreError {
        StoreError::Full(format!(
            "The content is larger than all your resources may be together ({} bytes, metadata included). Store less.",
            self.bytes
        ))
    }

    /// The error for a reservation beyond the maximum number.
    #[allow(clippy::unused_self, reason = "a method as the other errors are")]
    pub(super) fn out_of_reservations(&self) -> StoreError {
        StoreError::Full(format!(
            "You have {MAX_RESERVATIONS} uploads in progress. Complete or cancel some, or wait until some end."
        ))
    }

    /// The error for a new resource when the owner has `count` resources.
    pub(super) fn out_of_resources(&self, count: u64) -> StoreError {
        StoreError::Full(format!(
            "You have {count} resources; at most {} are allowed. Delete some with delete_resource, or wait until some expire.",
            self.resources
        ))
    }
}
