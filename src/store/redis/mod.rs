//! Resources in Redis, shared by all replicas on it.
//!
//! Redis itself removes what has expired, with no server running; what a
//! server adds is that those who listen hear of it. `0001_resources.lua` in
//! `migrations/` says which keys there are.

mod agenda;
mod entry;
mod events;
mod external_blobs;
mod scripts;
#[cfg(test)]
mod tests;
mod upload;

use std::{error::Error, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio_util::task::AbortOnDropHandle;

pub use self::external_blobs::RedisBlobs;
use self::{agenda::Agenda, external_blobs::ExternalUpload, scripts::Scripts, upload::RedisUpload};
use super::{
    Backend, Blob, ChangeFeed, Entry, Found, Lookup, OwnerQuota, ResourceUri, StoreError, Upload,
    Usage, blocks, expired::Expired, object::ObjectBlob,
};
use crate::{
    auth::Owner,
    clock::Timestamp,
    random::Random,
    redis::{Redis, RedisError, Shard, cmd, layout::Layout, pipe},
};

/// How many names are looked up at once while listing.
const PAGE: usize = 256;

/// How much content is asked for at once: what a block has that is not compressed.
const AT_ONCE: u64 = blocks::BLOCK_BYTES as u64;

/// Keeps resources in Redis.
#[derive(Debug)]
pub struct RedisBackend {
    inner: Arc<Inner>,
    _events: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Inner {
    redis: Redis,
    random: Random,
    quota: OwnerQuota,
    layout: Layout,
    scripts: Scripts,
    blobs: Option<RedisBlobs>,
    feed: ChangeFeed,
    agenda: Agenda,
    /// Nothing of it lies in Redis: each replica remembers what it heard.
    expired: Expired,
}

impl RedisBackend {
    /// Over a Redis whose layout is the present one. Needs a Tokio runtime:
    /// changes by other replicas are heard in the background while the value
    /// lives.
    ///
    /// # Errors
    /// [`RedisError::Layout`] for another layout; or why Redis does not answer.
    pub async fn open(redis: Redis, random: Random, quota: OwnerQuota) -> Result<Self, RedisError> {
        Self::open_beside(redis, random, quota, None).await
    }

    /// The same with a place for large content beside Redis.
    ///
    /// # Errors
    /// As [`RedisBackend::open`].
    pub async fn open_beside(
        redis: Redis,
        random: Random,
        quota: OwnerQuota,
        blobs: Option<RedisBlobs>,
    ) -> Result<Self, RedisError> {
        let layout = Layout::current();
        layout.check(&redis).await?;
        let changes = redis.listen(&redis.keys().channel(events::CHANNEL)).await?;
        let inner = Arc::new(Inner {
            scripts: Scripts::new(redis.keys(), &layout),
            blobs,
            feed: ChangeFeed::new(),
            agenda: Agenda::new(),
            expired: Expired::default(),
            redis,
            random,
            quota,
            layout,
        });
        let events = tokio::spawn(events::hear(changes, Arc::clone(&inner)));
        Ok(Self { inner, _events: AbortOnDropHandle::new(events) })
    }
}

impl Inner {
    fn shard_of(&self, owner: &Owner) -> Shard {
        self.redis.keys().shard_of(owner.as_str())
    }

    /// The resource and the id of its content.
    async fn look_up(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<(Entry, String)>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(entry::key(&self.shard_of(owner), owner, uri.as_str())).arg(&entry::FIELDS);
        let stored: entry::Stored = self.redis.query(&get).await.map_err(unavailable)?;
        stored.read(owner, uri)
    }

    async fn revisions(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<Found>, StoreError> {
        let shard = self.shard_of(owner);
        let key = entry::key(&shard, owner, uri.as_str());
        let mut gets = pipe();
        gets.atomic().cmd("HMGET").arg(&key).arg(&entry::FIELDS);
        gets.cmd("HGET").arg(&key).arg("past");
        let (stored, past): (entry::Stored, Option<String>) =
            self.redis.pipeline(&gets).await.map_err(unavailable)?;
        let Some((present, blob)) = stored.read(owner, uri)? else { return Ok(Vec::new()) };
        let past = past.unwrap_or_default();
        let mut gets = pipe();
        for revision in entry::past(&past) {
            let key = entry::past_key(&shard, owner, uri.as_str(), revision);
            gets.cmd("HMGET").arg(key).arg(&entry::FIELDS);
        }
        let mut revisions = Vec::new();
        if !past.is_empty() {
            let stored: Vec<entry::Stored> =
                self.redis.pipeline(&gets).await.map_err(unavailable)?;
            for stored in stored {
                // One that was dropped meanwhile is not there.
                if let Some((earlier, blob)) = stored.read(owner, uri)? {
                    revisions.push(self.found(earlier, &blob).earlier_than(&present));
                }
            }
        }
        revisions.push(self.found(present, &blob));
        Ok(revisions)
    }

    fn found(self: &Arc<Self>, entry: Entry, blob: &str) -> Found {
        let uri = entry.uri.clone();
        let external_blobs = external_blobs::object(self.redis.keys().prefix(), blob);
        let blob: Arc<dyn Blob> = match (external_blobs, &self.blobs) {
            (Some(path), Some(blobs)) => {
                Arc::new(ObjectBlob { objects: blobs.objects().clone(), path, uri })
            }
            (Some(_), None) => Arc::new(Unreachable),
            (None, _) => {
                let key = entry::blob_key(&self.shard_of(&entry.owner), blob);
                Arc::new(RedisBlob { inner: Arc::clone(self), key, uri })
            }
        };
        Found { entry: Arc::new(entry), blob }
    }

    /// When what had that name expired, if that is known.
    async fn expired_at(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<Timestamp>, StoreError> {
        let heard = self.expired.at(owner, uri);
        if heard.is_some() {
            return Ok(heard);
        }
        // Where it has not been told yet, it still stands in the index.
        let mut score = cmd("ZSCORE");
        score.arg(self.shard_of(owner).key("expiries", owner.as_str())).arg(uri.as_str());
        let at: Option<u64> = self.redis.query(&score).await.map_err(unavailable)?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// The owner's names after `min`, up to `max`, as Redis spells bounds.
    async fn names(
        &self,
        owner: &Owner,
        min: &[u8],
        max: &[u8],
        limit: usize,
    ) -> Result<Vec<ResourceUri>, StoreError> {
        let mut range = cmd("ZRANGEBYLEX");
        range.arg(self.shard_of(owner).key("names", owner.as_str())).arg(min).arg(max);
        range.arg("LIMIT").arg(0).arg(limit);
        let names: Vec<String> = self.redis.query(&range).await.map_err(unavailable)?;
        names.iter().map(|name| Ok(ResourceUri::parse(name)?)).collect()
    }

    /// Those of these names that live.
    async fn living(
        self: &Arc<Self>,
        owner: &Owner,
        names: &[ResourceUri],
    ) -> Result<Vec<Found>, StoreError> {
        let shard = self.shard_of(owner);
        let mut gets = pipe();
        for uri in names {
            gets.cmd("HMGET").arg(entry::key(&shard, owner, uri.as_str())).arg(&entry::FIELDS);
        }
        let stored: Vec<entry::Stored> = self.redis.pipeline(&gets).await.map_err(unavailable)?;
        let entries = names.iter().zip(stored).map(|(uri, stored)| stored.read(owner, uri));
        // One that cannot be read is missing from the list, and the rest is there.
        let readable = entries.filter_map(|entry| match entry {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(%error, source = error.source(), "left out of a listing");
                None
            }
        });
        Ok(readable.map(|(entry, blob)| self.found(entry, &blob)).collect())
    }
}

#[async_trait]
impl Backend for RedisBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self) -> Option<String> {
        Some(self.inner.redis.name())
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(&self, owner: &Owner, _: &ResourceUri) -> Result<Box<dyn Upload>, StoreError> {
        let inner = Arc::clone(&self.inner);
        Ok(match inner.blobs.clone() {
            Some(blobs) => Box::new(ExternalUpload::new(inner, blobs, owner.clone())),
            None => Box::new(RedisUpload::new(inner, owner.clone())),
        })
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        if let Some((entry, blob)) = self.inner.look_up(owner, uri).await? {
            return Ok(Lookup::Found(self.inner.found(entry, &blob)));
        }
        Ok(match self.inner.expired_at(owner, uri).await? {
            Some(at) => Lookup::Expired(at),
            None => Lookup::Missing,
        })
    }

    async fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Result<Vec<Found>, StoreError> {
        self.inner.revisions(owner, uri).await
    }

    async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        self.inner.delete(owner, uri).await
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let mut min = match after {
            Some(after) if after >= prefix => [b"(", after.as_bytes()].concat(),
            _ => [b"[", prefix.as_bytes()].concat(),
        };
        let max = beyond(prefix);
        let mut page = Vec::new();
        while page.len() < limit {
            let wanted = (limit - page.len()).min(PAGE);
            let names = self.inner.names(owner, &min, &max, wanted).await?;
            let Some(last) = names.last() else { break };
            min = [b"(", last.as_str().as_bytes()].concat();
            page.extend(self.inner.living(owner, &names).await?);
            if names.len() < wanted {
                break;
            }
        }
        Ok(page)
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        let shards = self.inner.redis.keys().shards().map(|shard| async move {
            let mut all = cmd("HGET");
            all.arg(shard.single("usage")).arg("*");
            self.inner.redis.query::<Option<String>>(&all).await
        });
        let shards = try_join_all(shards).await.map_err(unavailable)?;
        // "<resources> <bytes>"
        let shards = shards.iter().flatten().filter_map(|usage| usage.split_once(' '));
        Ok(shards.fold(Usage::default(), |sum, (resources, bytes)| Usage {
            resources: sum.resources + resources.parse::<u64>().unwrap_or_default(),
            bytes: sum.bytes + bytes.parse::<u64>().unwrap_or_default(),
        }))
    }

    async fn maintain(&self) {
        tokio::join!(self.inner.sweep_on_time(), self.inner.collect());
    }
}

const NAME: &str = "redis";

/// The bound after everything that begins with `prefix`, as Redis spells it.
fn beyond(prefix: &str) -> Vec<u8> {
    // UTF-8 has no byte 0xFF, so adding one to the last byte never overflows.
    let mut bound = [b"(", prefix.as_bytes()].concat();
    match prefix.len() {
        0 => b"+".to_vec(),
        last => {
            bound[last] += 1;
            bound
        }
    }
}

/// The content of one revision. Its key is never used for another.
struct RedisBlob {
    inner: Arc<Inner>,
    key: String,
    uri: ResourceUri,
}

#[async_trait]
impl Blob for RedisBlob {
    async fn range(&self, range: std::ops::Range<u64>) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let mut get = cmd("GETRANGE");
        get.arg(&self.key).arg(range.start).arg(range.end - 1);
        let bytes: Vec<u8> = self.inner.redis.query(&get).await.map_err(unavailable)?;
        if bytes.len() as u64 != range.end - range.start {
            // Its time was over, or it was replaced a while ago.
            return Err(StoreError::NotFound { uri: self.uri.clone() });
        }
        Ok(bytes.into())
    }

    fn read_ahead(&self) -> u64 {
        AT_ONCE
    }
}

/// Content beside Redis, in a place that this process was not told of.
struct Unreachable;

#[async_trait]
impl Blob for Unreachable {
    async fn range(&self, _: std::ops::Range<u64>) -> Result<Bytes, StoreError> {
        let source = "it lies beside Redis, and store.blobs does not say where".into();
        Err(StoreError::Unavailable { backend: NAME, source })
    }
}

fn unavailable(error: RedisError) -> StoreError {
    match error {
        RedisError::Full(_) => StoreError::Full(
            "The Redis store is full (maxmemory). Delete resources or wait until some expire."
                .into(),
        ),
        error => StoreError::Unavailable { backend: NAME, source: error.into() },
    }
}
