//! [`UploadsInProgress`]: the bytes of uploads that only this process counts.

use std::{collections::HashMap, sync::Arc};

use larder_identity::Owner;
use parking_lot::Mutex;

/// The bytes of this process's uploads beyond their reservations, by owner.
#[derive(Debug, Clone, Default)]
pub(super) struct UploadsInProgress(Arc<Mutex<HashMap<Owner, u64>>>);

impl UploadsInProgress {
    pub(super) fn bytes(&self, owner: &Owner) -> u64 {
        self.0.lock().get(owner).copied().unwrap_or_default()
    }

    pub(super) fn begin(&self, owner: &Owner) -> UploadInProgress {
        UploadInProgress { uploads: self.clone(), owner: owner.clone(), bytes: 0 }
    }
}

/// Counts bytes of one upload until it is dropped.
pub(super) struct UploadInProgress {
    uploads: UploadsInProgress,
    owner: Owner,
    bytes: u64,
}

impl UploadInProgress {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the bytes that the upload counts.
    pub(super) fn set(&mut self, bytes: u64) {
        let mut uploads = self.uploads.0.lock();
        let counted = uploads.entry(self.owner.clone()).or_default();
        *counted = *counted - self.bytes + bytes;
        self.bytes = bytes;

        if *counted == 0 {
            uploads.remove(&self.owner);
        }
    }
}

impl Drop for UploadInProgress {
    fn drop(&mut self) {
        self.set(0);
    }
}
