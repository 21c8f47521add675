//! Slots of the vault in files or a bucket: the n-th version of a slot is an object of its own,
//! so that only one instance can write it. Its predecessor is removed.

use std::fmt;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use object_store::path::Path;
use sha2::{Digest, Sha256};

use super::{ObjectLocation, objects::Objects};
use crate::{
    store::{StoreError, blocks::hex},
    vault::{Slot, Slots, VaultError},
};

/// How often a slot is read again that another instance changes meanwhile.
const ATTEMPTS: usize = 5;

/// Slots that all instances on one directory or bucket share.
pub struct ObjectSlots {
    objects: Objects,
}

impl ObjectSlots {
    /// Slots at this location.
    pub fn new(location: &ObjectLocation) -> Self {
        Self { objects: location.objects() }
    }

    async fn latest(&self, folder: &Path) -> Result<u64, StoreError> {
        let mut files = self.objects.list(folder);
        let mut latest = 0;
        while let Some(file) = files.try_next().await? {
            let number = file.location.filename().and_then(|name| name.parse().ok());
            latest = latest.max(number.unwrap_or(0));
        }
        Ok(latest)
    }
}

#[async_trait]
impl Slots for ObjectSlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let folder = folder(name);
        for _ in 0..ATTEMPTS {
            let version = self.latest(&folder).await?;
            if version == 0 {
                return Ok(Slot::default());
            }
            if let Some(content) = self.objects.get(&file(&folder, version)).await? {
                return Ok(Slot { version, content: content.to_vec() });
            }
        }
        Err(VaultError::Unavailable("it changes all the time".to_owned()))
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
    ) -> Result<bool, VaultError> {
        let folder = folder(name);
        // A version that was removed must not come back.
        if self.latest(&folder).await? != version {
            return Ok(false);
        }
        let is_created = self.objects.create(&file(&folder, version + 1), content).await?;
        if !is_created {
            return Ok(false);
        }
        if self.latest(&folder).await? != version + 1 {
            // Others were faster, and have removed their own object of this version.
            self.objects.remove(&file(&folder, version + 1)).await?;
            return Ok(false);
        }
        if version > 0 {
            self.objects.remove(&file(&folder, version)).await?;
        }
        Ok(true)
    }
}

/// By a hash, because names are longer than those of files may be.
fn folder(name: &str) -> Path {
    Path::from(format!("=vault/{}", hex(&Sha256::digest(name))))
}

fn file(folder: &Path, version: u64) -> Path {
    folder.clone().join(version.to_string())
}

impl From<StoreError> for VaultError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl fmt::Debug for ObjectSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectSlots")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::random::Random;

    #[tokio::test]
    async fn instances_share_slots_and_overwrite_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let location = ObjectLocation::open(&url, &Random::system()).await.unwrap();
        let [one, two] = [(); 2].map(|()| ObjectSlots::new(&location));
        assert_eq!(one.read("a/b").await.unwrap(), Slot::default());
        assert!(one.replace("a/b", 0, b"\0\xff".to_vec()).await.unwrap());
        assert!(!two.replace("a/b", 0, b"late".to_vec()).await.unwrap());
        let slot = Slot { version: 1, content: b"\0\xff".to_vec() };
        assert_eq!(two.read("a/b").await.unwrap(), slot);
        assert!(two.replace("a/b", 1, Vec::new()).await.unwrap());
        assert_eq!(one.read("a/b").await.unwrap(), Slot { version: 2, content: Vec::new() });
        assert!(!one.replace("a/b", 0, b"old".to_vec()).await.unwrap());
    }
}
