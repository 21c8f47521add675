//! [`ObjectSlots`]: slots of the vault in files or a bucket.
//!
//! Each version of a slot is an object that only one instance can create. The instance then
//! removes the object of the version before. The object begins with the time at which the slot
//! expires. An expired slot reads as empty, and a sweep removes it later.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use larder_runtime::{
    clock::{Clock, Timestamp},
    hex::hex,
};
use object_store::path::Path;
use sha2::{Digest, Sha256};
use tokio_util::task::AbortOnDropHandle;

use super::{
    ObjectLocation,
    due::{DueFile, DueNames, DueQueue},
    layout,
    objects::Objects,
};
use crate::{
    store::StoreError,
    vault::{Slot, Slots, VaultError},
};

/// How many times a slot is read while other instances change it.
const ATTEMPTS: usize = 5;

/// The interval between two sweeps.
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// How long an expired slot stays, in milliseconds. Another instance may be about to replace the
/// version that it has read.
const STAY_MILLIS: u64 = 60 * 60 * 1000;

/// Slots that all instances on one directory or bucket share.
pub struct ObjectSlots {
    store: Arc<SlotStore>,
    _sweep: AbortOnDropHandle<()>,
}

struct SlotStore {
    objects: Objects,
    /// The slots that may have expired, by the names of their folders.
    due: DueQueue,
    clock: Arc<dyn Clock>,
}

/// The latest version of a slot, and when it expires.
struct SlotVersion {
    slot: Slot,
    expires: Option<Timestamp>,
}

impl ObjectSlots {
    /// Slots at a location. Needs a Tokio runtime, which removes expired slots while the value
    /// lives.
    pub fn new(location: &ObjectLocation, clock: Arc<dyn Clock>) -> Self {
        let objects = location.objects();
        let due = DueQueue::new(objects.clone(), layout::SLOTS_DUE_FOLDER, DueNames::Hour);
        let store = Arc::new(SlotStore { objects, due, clock });

        let swept = Arc::clone(&store);
        let sweep = tokio::spawn(async move { swept.sweep_on_time().await });

        Self { store, _sweep: AbortOnDropHandle::new(sweep) }
    }
}

impl SlotStore {
    /// The number of the latest version; 0 if there is none.
    async fn latest(&self, folder: &Path) -> Result<u64, StoreError> {
        let mut files = self.objects.list(folder);
        let mut latest = 0;
        while let Some(file) = files.try_next().await? {
            let number = file.location.filename().and_then(|name| name.parse().ok());
            latest = latest.max(number.unwrap_or(0));
        }

        Ok(latest)
    }

    /// The latest version, if there is one.
    async fn version(&self, folder: &Path) -> Result<Option<SlotVersion>, VaultError> {
        for _ in 0..ATTEMPTS {
            let version = self.latest(folder).await?;
            if version == 0 {
                return Ok(None);
            }

            if let Some(stored) = self.objects.get(&version_file(folder, version)).await? {
                let (expires, content) = decode(&stored);
                return Ok(Some(SlotVersion { slot: Slot { version, content }, expires }));
            }
        }

        Err(VaultError::Unavailable("it changes all the time".to_owned()))
    }

    async fn sweep_on_time(&self) {
        loop {
            self.clock.sleep_until(self.clock.now().saturating_add(SWEEP)).await;
            if let Err(error) = self.sweep().await {
                tracing::debug!(%error, "cannot remove expired slots; trying again in an hour");
            }
        }
    }

    /// Removes the slots that have expired some time ago.
    async fn sweep(&self) -> Result<(), VaultError> {
        let now = self.clock.now().as_millis();
        let before = Timestamp::from_millis(now.saturating_sub(STAY_MILLIS));
        self.due.sweep(before, |file| self.remove_if_expired(file, before)).await
    }

    /// Removes the slot of a due file, if it has expired at `before`, and the file.
    async fn remove_if_expired(&self, file: DueFile, before: Timestamp) -> Result<(), VaultError> {
        let folder = Path::from(format!("=vault/{}", file.key));

        if let Some(SlotVersion { slot, expires }) = self.version(&folder).await?
            && expires.is_some_and(|expires| expires <= before)
        {
            // A version that was written meanwhile has another number.
            self.objects.remove(&version_file(&folder, slot.version)).await?;
        }

        Ok(self.due.remove(&file).await?)
    }
}

#[async_trait]
impl Slots for ObjectSlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let found = self.store.version(&folder(name)).await?;
        let Some(SlotVersion { mut slot, expires }) = found else { return Ok(Slot::default()) };

        if expires.is_some_and(|expires| expires <= self.store.clock.now()) {
            slot.content.clear();
        }

        Ok(slot)
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let folder = folder(name);
        let SlotStore { objects, due, clock } = &*self.store;

        // A removed version must not be created again.
        if self.store.latest(&folder).await? != version {
            return Ok(false);
        }

        let expires = ttl.map(|ttl| clock.now().saturating_add(ttl));
        if let Some(expires) = expires {
            // Written before the slot, so that no slot remains without a due file.
            due.put_key(expires, folder.filename().unwrap_or_default()).await?;
        }

        let content = encode(expires, &content);
        if !objects.create(&version_file(&folder, version + 1), content).await? {
            return Ok(false);
        }

        if self.store.latest(&folder).await? != version + 1 {
            // Another instance has made this and later versions, and has removed this version.
            objects.remove(&version_file(&folder, version + 1)).await?;
            return Ok(false);
        }

        if version > 0 {
            objects.remove(&version_file(&folder, version)).await?;
        }

        Ok(true)
    }
}

/// Encodes a version: the time at which it expires (0 for never), then the content.
fn encode(expires: Option<Timestamp>, content: &[u8]) -> Vec<u8> {
    let expires = expires.map_or(0, Timestamp::as_millis);
    [&expires.to_be_bytes(), content].concat()
}

/// Decodes a version: the time at which it expires, and the content.
fn decode(stored: &[u8]) -> (Option<Timestamp>, Vec<u8>) {
    let Some((expires, content)) = stored.split_first_chunk() else { return (None, Vec::new()) };
    let expires = Some(u64::from_be_bytes(*expires)).filter(|expires| *expires > 0);

    (expires.map(Timestamp::from_millis), content.to_vec())
}

/// The folder of a slot, named by a hash, because names may be longer than file names.
fn folder(name: &str) -> Path {
    Path::from(format!("=vault/{}", hex(&Sha256::digest(name))))
}

/// The object of a version.
fn version_file(folder: &Path, version: u64) -> Path {
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

    use futures_util::StreamExt;

    use super::*;
    use crate::{testing::vault::Harness, vault_contract};
    use larder_runtime::{clock::ManualClock, random::Random};

    struct InFiles {
        location: ObjectLocation,
        clock: ManualClock,
        _directory: tempfile::TempDir,
    }

    impl InFiles {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("file://{}", directory.path().display());
            let location = ObjectLocation::open(&url, &Random::system()).await.unwrap();
            Self { location, clock: ManualClock::new(), _directory: directory }
        }

        fn slots(&self) -> ObjectSlots {
            ObjectSlots::new(&self.location, Arc::new(self.clock.clone()))
        }
    }

    #[async_trait]
    impl Harness for InFiles {
        async fn instances(&self) -> [Arc<dyn Slots>; 2] {
            [(); 2].map(|()| Arc::new(self.slots()) as Arc<dyn Slots>)
        }

        async fn pass(&self, time: Duration) {
            self.clock.advance(time);
        }
    }

    vault_contract!(InFiles::new());

    #[tokio::test]
    async fn a_sweep_removes_expired_slots_and_no_others() {
        let files = InFiles::new().await;
        let slots = files.slots();
        let ttl = Some(Duration::from_secs(60));

        for name in ["expired", "extended", "kept"] {
            let ttl = ttl.filter(|_| name != "kept");
            assert!(slots.replace(name, 0, b"x".to_vec(), ttl).await.unwrap());
        }

        let day = Some(Duration::from_secs(24 * 3600));
        assert!(slots.replace("extended", 1, b"y".to_vec(), day).await.unwrap());

        files.clock.advance(Duration::from_secs(61));
        // Another instance may still be about to replace the version that it has read.
        slots.store.sweep().await.unwrap();
        assert_eq!(slots.read("expired").await.unwrap().version, 1);

        files.clock.advance(3 * SWEEP);
        slots.store.sweep().await.unwrap();

        assert_eq!(slots.read("expired").await.unwrap(), Slot::default());
        assert_eq!(slots.read("extended").await.unwrap().content, b"y");
        assert_eq!(slots.read("kept").await.unwrap().content, b"x");

        let due = slots.store.due.due_at(Timestamp::from_millis(u64::MAX)).await.unwrap();
        assert_eq!(due.count().await, 1, "one for the extended slot");
    }
}
