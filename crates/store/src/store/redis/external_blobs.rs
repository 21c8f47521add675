//! Large content as objects outside Redis, so that it does not use Redis' memory.
//!
//! For such content, Redis has a mark under the content's key, which expires as the content
//! would. So native expiry decides, and the scripts treat both kinds alike. An object is in use
//! while its mark exists.
//!
//! For each object, a due file says when to check it: when its mark expires, and at least every
//! hour. The first instance to process the file removes the object if the mark is gone. An
//! instance that deletes or replaces a resource writes another due file, for the new expiry of the
//! mark; if that fails, the hourly check remains. So unused objects are removed within minutes,
//! and only due files are listed, never objects.

use std::{any::Any, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::clock::{Clock, Timestamp};
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::{
    RedisState,
    blob::RedisBlob,
    entry,
    parts::ContentParts,
    unavailable,
    upload::{Chunks, LastPart, RedisUpload, discard},
};
use crate::{
    redis::cmd,
    store::object::{ContentWriter, DueFile, DueNames, DueQueue, ObjectBlob, Objects},
    store::upload_reservation::UploadReservation,
    store::{
        Committed, Draft, ObjectLocation, StoreError, StoredBlock, StoredResource, Upload,
        WriteMode,
    },
};

/// The prefix of the IDs of external content.
const ID_PREFIX: &str = "o-";

/// The mark that Redis has instead of the content.
const MARK: &[u8] = b"o";

/// The time between checks of an object.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// The longest time of a commit. No object without a mark is removed earlier.
const MAX_COMMIT: Duration = Duration::from_mins(10);

/// The time between listings of due files.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// The pause after listing or processing due files failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A minute in milliseconds.
const MINUTE: u64 = 60 * 1000;

/// The location of large content outside Redis, of one installation only.
#[derive(Debug, Clone)]
pub struct ExternalBlobs {
    objects: Objects,
    threshold: usize,
    clock: Arc<dyn Clock>,
}

/// The content of a due file, whose key is the ID of the object.
#[derive(Serialize, Deserialize)]
struct DueCheck {
    owner: Owner,
}

impl ExternalBlobs {
    /// A location for content of more than `threshold` bytes as stored. An upload buffers as many
    /// bytes in memory.
    pub fn new(location: &ObjectLocation, threshold: usize, clock: Arc<dyn Clock>) -> Self {
        Self { objects: location.objects(), threshold, clock }
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The due files of an installation.
    fn due(&self, installation: &str) -> DueQueue {
        let folder = format!("=due-blobs/{installation}");
        DueQueue::new(self.objects.clone(), &folder, DueNames::Millisecond)
    }

    /// Writes a due file, so that the object is checked when its mark has expired after `life`, and
    /// no later than [`CHECK_INTERVAL`] from now.
    async fn schedule_check(
        &self,
        installation: &str,
        owner: &Owner,
        id: &str,
        life: Duration,
    ) -> Result<(), StoreError> {
        let life = life.clamp(Duration::from_millis(1), CHECK_INTERVAL);
        let at = self.clock.now().saturating_add(life).as_millis();

        // Whole minutes make several checks of an object one.
        let minute = Timestamp::from_millis(at.div_ceil(MINUTE) * MINUTE);
        let check = DueCheck { owner: owner.clone() };
        self.due(installation).put(minute, id, &check).await.map(drop)
    }
}

/// The path of content outside Redis. None for the ID of content in Redis.
pub(super) fn object_path(installation: &str, id: &str) -> Option<Path> {
    let is_external = id.starts_with(ID_PREFIX);
    is_external.then(|| {
        let path = Path::parse(format!("=blobs/{installation}/{id}.content"));
        path.expect("prefixes and IDs have no slashes, and are not empty")
    })
}

impl RedisState {
    /// Removes objects whose mark is gone. Runs until dropped.
    pub(super) async fn remove_unused_objects(&self) {
        let Some(blobs) = &self.blobs else { return };

        loop {
            let next = blobs.clock.now().saturating_add(POLL_INTERVAL);
            match self.process_due(blobs).await {
                Ok(()) => blobs.clock.sleep_until(next).await,
                Err(error) => {
                    tracing::debug!(%error, "cannot remove unused external content; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Checks the objects of all due files, and returns the first error.
    async fn process_due(&self, blobs: &ExternalBlobs) -> Result<(), StoreError> {
        let now = blobs.clock.now();
        let due = &blobs.due(self.redis.keys().prefix());
        due.sweep(now, |file| async move { self.check(blobs, due, &file).await }).await
    }

    /// Removes the object if its mark is gone; otherwise schedules the next check.
    async fn check(
        &self,
        blobs: &ExternalBlobs,
        due: &DueQueue,
        file: &DueFile,
    ) -> Result<(), StoreError> {
        let Some(DueCheck { owner }) = due.read(file).await? else { return Ok(()) };
        let id = &file.key;

        let mut life = cmd("PTTL");
        life.arg(entry::blob_key(&self.shard_of(&owner), id));
        let life: i64 = self.redis.query(&life).await.map_err(unavailable)?;

        // PTTL returns -2 for a missing key. A mark always has an expiry.
        if life == -2 {
            self.remove_object(blobs, id).await?;
        } else {
            let life = Duration::from_millis(life.try_into().unwrap_or(u64::MAX));
            let installation = self.redis.keys().prefix();
            blobs.schedule_check(installation, &owner, id, life).await?;
        }

        due.remove(file).await
    }

    async fn remove_object(&self, blobs: &ExternalBlobs, id: &str) -> Result<(), StoreError> {
        match object_path(self.redis.keys().prefix(), id) {
            Some(path) => blobs.objects.remove(&path).await,
            None => Ok(()),
        }
    }

    /// Removes objects whose marks a script has removed, and schedules the check of objects whose
    /// marks expire sooner now. An item of `external` is `<milliseconds> <id>`. The hourly checks
    /// make up for failures.
    pub(super) async fn remove_external(&self, owner: &Owner, external: &[String]) {
        let Some(blobs) = &self.blobs else { return };

        for (life, id) in external.iter().filter_map(|external| external.split_once(' ')) {
            let life = Duration::from_millis(life.parse().unwrap_or_default());
            let done = if life.is_zero() {
                self.remove_object(blobs, id).await
            } else {
                blobs.schedule_check(self.redis.keys().prefix(), owner, id, life).await
            };

            if let Err(error) = done {
                tracing::debug!(%error, "cannot remove external content now; a check will");
            }
        }
    }
}

/// An upload that goes to an object once it exceeds the threshold.
pub(super) struct ExternalUpload {
    inner: Arc<RedisState>,
    blobs: ExternalBlobs,
    owner: Owner,
    /// The reservation of the upload, until a [`RedisUpload`] takes it.
    reservation: Option<UploadReservation<RedisState>>,
    size: u64,

    /// Content up to the threshold, which may still go to Redis.
    buffer: Vec<StoredBlock>,
    buffered_bytes: usize,

    /// The ID and the writer of the object, once the threshold is exceeded.
    external: Option<(String, ContentWriter)>,
    /// The upload of content that was copied within Redis.
    copied: Option<Box<RedisUpload>>,
}

impl ExternalUpload {
    pub(super) fn new(
        inner: Arc<RedisState>,
        blobs: ExternalBlobs,
        owner: Owner,
        reservation: UploadReservation<RedisState>,
    ) -> Self {
        Self {
            inner,
            blobs,
            owner,
            reservation: Some(reservation),
            size: 0,
            buffer: Vec::new(),
            buffered_bytes: 0,
            external: None,
            copied: None,
        }
    }

    /// Makes sure that at least the received bytes are reserved.
    async fn cover(&mut self) -> Result<(), StoreError> {
        match &mut self.reservation {
            Some(reservation) => reservation.cover(self.size).await,
            None => Ok(()),
        }
    }

    /// Begins the object.
    fn begin_object(&mut self) -> &mut ContentWriter {
        let id = format!("{ID_PREFIX}{}", self.inner.random.id());
        let path = object_path(self.inner.redis.keys().prefix(), &id);
        let path = path.expect("the ID has the prefix");
        let writer = ContentWriter::new(self.blobs.objects.clone(), path);

        let (_, writer) = self.external.insert((id, writer));
        writer
    }

    /// Takes content that is in Redis, if Redis can copy it.
    async fn copy_in_redis(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let blob: &dyn Any = &*source.blob;
        let shard = self.inner.shard_of(&self.owner);
        let stored = source.entry.stored_size();
        let is_copied = |blob: &RedisBlob| blob.is_copied_into(&self.inner, &shard, stored);
        if !blob.downcast_ref().is_some_and(is_copied) {
            return Ok(false);
        }

        let Some(reservation) = self.reservation.take() else { return Ok(false) };
        let upload = RedisUpload::new(Arc::clone(&self.inner), self.owner.clone(), reservation);
        self.copied.insert(Box::new(upload)).copy(source).await
    }

    /// The removal of the mark and the reservation, if Redis has either. The writer removes the
    /// object.
    fn discarding(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let id = self.external.take().map(|(id, _)| id).unwrap_or_default();
        let reservation = self.reservation.take()?;
        let is_known = !id.is_empty() || reservation.is_used();
        is_known.then(|| discard(Arc::clone(&self.inner), self.owner.clone(), &id, &reservation))
    }
}

#[async_trait]
impl Upload for ExternalUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        match &mut self.reservation {
            Some(reservation) => reservation.announce(bytes).await,
            None => Ok(()),
        }
    }

    fn reserved(&self) -> u64 {
        match &self.copied {
            Some(copied) => copied.reserved(),
            None => self.reservation.as_ref().map_or(0, UploadReservation::bytes),
        }
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let blob: &dyn Any = &*source.blob;
        let Some(ObjectBlob { objects, path, .. }) = blob.downcast_ref() else {
            return self.copy_in_redis(source).await;
        };
        let own = &self.blobs.objects;
        if !own.is_same_location(objects) || !own.copies(source.entry.stored_size()) {
            return Ok(false);
        }

        self.size = source.entry.size;
        self.cover().await?;
        self.begin_object().copy(path.clone());
        Ok(true)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.size += block.size;
        self.inner.quota.check_upload(self.size)?;

        if self.external.is_some() {
            self.cover().await?;
        }
        if let Some((_, writer)) = &mut self.external {
            return writer.append(block.bytes).await;
        }

        self.buffered_bytes += block.bytes.len();
        self.buffer.push(block);

        if self.buffered_bytes > self.blobs.threshold {
            self.cover().await?;
            let buffer = std::mem::take(&mut self.buffer);
            let writer = self.begin_object();

            for block in buffer {
                writer.append(block.bytes).await?;
            }
        }

        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        let missing = || StoreError::NotFound { uri: draft.uri.clone() };

        if let Some(copied) = self.copied.take() {
            return copied.commit(draft).await;
        }
        if self.external.is_none() {
            let inner = Arc::clone(&self.inner);
            let reservation = self.reservation.take().ok_or_else(missing)?;
            let mut upload = Box::new(RedisUpload::new(inner, self.owner.clone(), reservation));

            for block in std::mem::take(&mut self.buffer) {
                if let Err(error) = upload.append(block).await {
                    upload.discard().await;
                    return Err(error);
                }
            }

            return upload.commit(draft).await;
        }

        let Some((id, mut writer)) = self.external.take() else { return Err(missing()) };
        let reservation = self.reservation.take().ok_or_else(missing)?;
        let discarding = || discard(Arc::clone(&self.inner), self.owner.clone(), &id, &reservation);

        if let Err(full) = writer.check_disk().await {
            discarding().await;
            return Err(full);
        }

        // Scheduled before the object is complete, so that no object remains unchecked.
        let life = match &draft.mode {
            // The mark may be written a little later.
            WriteMode::Create { ttl, .. } | WriteMode::Update { ttl: Some(ttl), .. } => {
                ttl.saturating_add(MAX_COMMIT)
            }
            WriteMode::Update { ttl: None, .. } => CHECK_INTERVAL,
            WriteMode::Restore(entry) => entry.expires.since(draft.now).saturating_add(MAX_COMMIT),
        };

        let installation = self.inner.redis.keys().prefix();
        let completing = async {
            self.blobs.schedule_check(installation, &self.owner, &id, life).await?;
            writer.finish(&draft.uri).await
        };
        if let Err(error) = completing.await {
            discarding().await;
            return Err(error);
        }

        let has_object = writer.keep();
        let mark = LastPart::Inline(Chunks::from(Bytes::from_static(MARK)));
        let stored = MARK.len() as u64;
        let committed =
            self.inner.commit(draft, &ContentParts::of(&id), &reservation, mark, stored).await;

        if matches!(committed, Err(StoreError::NotFound { .. } | StoreError::Full(_))) {
            writer.discard(has_object);
            discarding().await;
        }

        committed
    }

    async fn discard(mut self: Box<Self>) {
        if let Some(copied) = self.copied.take() {
            copied.discard().await;
        }
        if let Some(discarding) = self.discarding() {
            discarding.await;
        }
    }
}

impl Drop for ExternalUpload {
    fn drop(&mut self) {
        if let Some(discarding) = self.discarding()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(discarding);
        }
    }
}
