//! Large content beside Redis, as objects, so that a busy Redis is not filled by it.
//!
//! What lies in Redis under the content's key is a mark then, which expires as
//! the content itself would: so native expiry stays the truth, and all that the
//! scripts do holds for both. An object is wanted as long as its mark is there.
//! A file says when to look: an hour after it was written, and each hour again,
//! whichever server comes first removes the object if its mark has gone. So what
//! nobody wants is gone within little more than an hour, and nothing is ever
//! listed but what is due.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use super::{
    Inner, entry, unavailable,
    upload::{Pieces, RedisUpload, Rest},
};
use crate::{
    auth::Owner,
    clock::{Clock, Timestamp},
    redis::cmd,
    store::{
        Committed, Draft, ObjectPlace, Packed, StoreError, Upload,
        object::{Objects, Parts},
    },
};

/// How ids begin of content that lies there.
const BESIDE: &str = "o-";

/// What lies in Redis in its place.
const MARK: &[u8] = b"o";

/// How long until somebody looks whether an object is still wanted.
pub(super) const LOOK: Duration = Duration::from_hours(1);

/// How often somebody asks whether there is something to look at.
const ROUND: Duration = Duration::from_mins(1);

/// How long to wait where that has failed.
const RETRY: Duration = Duration::from_secs(1);

/// How many are looked at together.
const LOOKERS: usize = 8;

const HOUR: u64 = 60 * 60 * 1000;

/// A place for large content, of this installation alone.
#[derive(Debug, Clone)]
pub struct RedisBlobs {
    objects: Objects,
    over: usize,
    clock: Arc<dyn Clock>,
}

/// Whose content that is.
#[derive(Serialize, Deserialize)]
struct Due {
    owner: Owner,
}

impl RedisBlobs {
    /// That place, for content of more than `over` bytes as it is kept. So much
    /// of each upload is held in memory.
    pub fn new(place: &ObjectPlace, over: usize, clock: Arc<dyn Clock>) -> Self {
        Self { objects: place.objects(), over, clock }
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Puts an object down to be looked at.
    async fn note(
        &self,
        installation: &str,
        owner: &Owner,
        id: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (hour, millis) = (at.as_millis() / HOUR, at.as_millis());
        let name = format!("=due-blobs/{installation}/{hour:010}/{millis:016}-{id}.json");
        let due = serde_json::to_vec(&Due { owner: owner.clone() }).expect("it is JSON");
        self.objects.put(&path(&name), due).await
    }
}

/// Where content of that id lies beside Redis, if it does.
pub(super) fn object(installation: &str, id: &str) -> Option<Path> {
    let lies_beside = id.starts_with(BESIDE);
    lies_beside.then(|| path(&format!("=blobs/{installation}/{id}.content")))
}

fn path(path: &str) -> Path {
    Path::parse(path).expect("prefixes and ids have no slashes, and are not empty")
}

/// When an object is to be looked at, and its id.
fn due(file: &Path) -> Option<(Timestamp, String)> {
    let (millis, id) = file.filename()?.strip_suffix(".json")?.split_once('-')?;
    Some((Timestamp::from_millis(millis.parse().ok()?), id.to_owned()))
}

impl Inner {
    /// Removes objects that nobody wants any more, until dropped.
    pub(super) async fn collect(&self) {
        let Some(blobs) = &self.blobs else { return };
        loop {
            let next = blobs.clock.now().saturating_add(ROUND);
            match self.collect_due(blobs).await {
                Ok(()) => blobs.clock.sleep_until(next).await,
                Err(error) => {
                    tracing::debug!(%error, "large content that has gone cannot be removed now");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    async fn collect_due(&self, blobs: &RedisBlobs) -> Result<(), StoreError> {
        let now = blobs.clock.now();
        let all = path(&format!("=due-blobs/{}", self.redis.keys().prefix()));
        let mut ripe = Vec::new();
        for hour in blobs.objects.folders(&all).await? {
            let begins = hour.filename().and_then(|hour| hour.parse::<u64>().ok());
            if begins.is_none_or(|hour| hour * HOUR > now.as_millis()) {
                continue;
            }
            let mut files = blobs.objects.below(&hour);
            while let Some(file) = files.try_next().await? {
                if let Some((_, id)) = due(&file.location).filter(|(at, _)| *at <= now) {
                    ripe.push((file.location, id));
                }
            }
        }
        let looking =
            stream::iter(ripe).map(|(file, id)| async move { self.look(blobs, &file, &id).await });
        // One that fails keeps no other from being looked at.
        let looked: Vec<_> = looking.buffer_unordered(LOOKERS).collect().await;
        looked.into_iter().collect()
    }

    async fn look(&self, blobs: &RedisBlobs, file: &Path, id: &str) -> Result<(), StoreError> {
        // Somebody else may have been faster.
        let Some(due) = blobs.objects.get(file).await? else { return Ok(()) };
        let installation = self.redis.keys().prefix();
        match serde_json::from_slice::<Due>(&due) {
            Ok(Due { owner }) => {
                let mut exists = cmd("EXISTS");
                exists.arg(entry::blob_key(&self.shard_of(&owner), id));
                if self.redis.query(&exists).await.map_err(unavailable)? {
                    let at = blobs.clock.now().saturating_add(LOOK);
                    blobs.note(installation, &owner, id, at).await?;
                } else if let Some(path) = object(installation, id) {
                    blobs.objects.remove(&path).await?;
                }
            }
            Err(error) => tracing::error!(%error, %file, "it does not say what is due"),
        }
        blobs.objects.remove(file).await
    }
}

/// Content that goes beside Redis once it is large enough.
pub(super) struct ExternalUpload {
    inner: Arc<Inner>,
    blobs: RedisBlobs,
    owner: Owner,
    size: u64,
    /// What may still go into Redis, and how much that is.
    held: Vec<Packed>,
    held_bytes: usize,
    large: Option<(String, Parts)>,
}

impl ExternalUpload {
    pub(super) fn new(inner: Arc<Inner>, blobs: RedisBlobs, owner: Owner) -> Self {
        Self { inner, blobs, owner, size: 0, held: Vec::new(), held_bytes: 0, large: None }
    }
}

#[async_trait]
impl Upload for ExternalUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        self.size += block.size;
        self.inner.quota.check_upload(self.size)?;
        if let Some((_, parts)) = &mut self.large {
            return parts.append(block.bytes).await;
        }
        self.held_bytes += block.bytes.len();
        self.held.push(block);
        if self.held_bytes > self.blobs.over {
            let id = format!("{BESIDE}{}", self.inner.random.id());
            let path = object(self.inner.redis.keys().prefix(), &id);
            let path = path.expect("its id says that it lies there");
            let parts = Parts::new(self.blobs.objects.clone(), path);
            let (_, parts) = self.large.insert((id, parts));
            for block in self.held.drain(..) {
                parts.append(block.bytes).await?;
            }
        }
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        let Some((id, mut parts)) = self.large.take() else {
            let mut upload = Box::new(RedisUpload::new(self.inner, self.owner));
            for block in self.held {
                upload.append(block).await?;
            }
            return upload.commit(draft).await;
        };
        // First, so that nothing lies there that nobody will look at.
        let at = self.blobs.clock.now().saturating_add(LOOK);
        let installation = self.inner.redis.keys().prefix();
        self.blobs.note(installation, &self.owner, &id, at).await?;
        parts.finish().await?;
        let whole = parts.give();
        let mark = Rest::Inline(Pieces::of(Bytes::from_static(MARK)));
        let committed = self.inner.commit(draft, &id, mark, MARK.len() as u64).await;
        if matches!(committed, Err(StoreError::NotFound { .. } | StoreError::Full(_))) {
            parts.take_back(whole);
        }
        committed
    }
}
