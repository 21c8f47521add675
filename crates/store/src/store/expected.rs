//! [`Expected`]: the announced size and digest of content, which are checked before the content
//! becomes visible.

use super::StoreError;

/// The announced size and digest of content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The size in bytes. Content that would exceed the quota is refused before it arrives.
    pub size: Option<u64>,
    /// The SHA-256 in hexadecimal.
    pub sha256: Option<String>,
}

impl Expected {
    /// Compares the announced size and digest with those of the content that has arrived.
    ///
    /// # Errors
    /// [`StoreError::NotAsAnnounced`].
    pub(super) fn check(&self, size: u64, sha256: &str) -> Result<(), StoreError> {
        if let Some(announced) = self.size.filter(|announced| *announced != size) {
            let problem = format!("Size is {size}, announced {announced}: nothing was stored.");
            return Err(StoreError::NotAsAnnounced(problem));
        }

        match &self.sha256 {
            Some(announced) if announced != sha256 => Err(StoreError::NotAsAnnounced(format!(
                "SHA-256 is {sha256}, announced {announced}: nothing was stored."
            ))),
            _ => Ok(()),
        }
    }
}
