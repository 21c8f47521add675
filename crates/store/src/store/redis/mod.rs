//! Resources in Redis, shared by all instances that use it.
//!
//! Redis itself removes what has expired, with no instance running. An instance
//! adds the announcement of each expiry. `0001_resources.lua` in `migrations/`
//! documents the keys.

mod arguments;
mod blob;
mod entry;
mod events;
mod external_blobs;
mod lookup;
mod owners;
mod parts;
mod schedule;
mod scripts;
#[cfg(test)]
mod tests;
mod time;
mod upload;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio_util::task::AbortOnDropHandle;

use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, random::Random};

pub use self::external_blobs::ExternalBlobs;
use self::{
    external_blobs::ExternalUpload,
    schedule::SweepSchedule,
    scripts::{ScriptCode, Scripts},
    time::RedisTime,
    upload::RedisUpload,
};
use super::{
    Backend, ChangeFeed, DiskSpace, Lookup, OwnerPage, OwnerQuota, ResourceUri, StoreError,
    StoredResource, Upload, Usage, Version, expired::Expired,
    upload_reservation::UploadReservation,
};
use crate::{
    redis::layout::Layout,
    redis::{Redis, RedisError, Shard, cmd, escape},
};

const NAME: &str = "redis";

/// A [`Backend`] that stores resources in Redis.
#[derive(Debug)]
pub struct RedisBackend {
    inner: Arc<RedisState>,
    _events: AbortOnDropHandle<()>,
}

/// The state that the backend shares with its uploads, blobs and background tasks.
#[derive(Debug)]
struct RedisState {
    redis: Redis,
    random: Random,
    quota: OwnerQuota,
    layout: Layout,
    scripts: Scripts,
    blobs: Option<ExternalBlobs>,
    feed: ChangeFeed,
    schedule: SweepSchedule,
    time: RedisTime,

    /// Expired resources, by the events received. Redis keeps no trace of them.
    expired: Expired,
}

impl RedisBackend {
    /// A backend over a Redis with the current layout. Needs a Tokio runtime, in
    /// which it receives the changes of all instances until it is dropped.
    ///
    /// # Errors
    /// [`RedisError::Layout`] if the layout is another; any other error if Redis
    /// is not available.
    pub async fn open(redis: Redis, random: Random, quota: OwnerQuota) -> Result<Self, RedisError> {
        Self::open_with_blobs(redis, random, quota, None).await
    }

    /// A backend that stores large content in `blobs` instead of Redis.
    ///
    /// # Errors
    /// As [`RedisBackend::open`].
    pub async fn open_with_blobs(
        redis: Redis,
        random: Random,
        quota: OwnerQuota,
        blobs: Option<ExternalBlobs>,
    ) -> Result<Self, RedisError> {
        Self::open_with_code(&ScriptCode::CURRENT, redis, random, quota, blobs).await
    }

    /// Opens a backend that runs `code`; tests pass the scripts of earlier versions.
    async fn open_with_code(
        code: &ScriptCode,
        redis: Redis,
        random: Random,
        quota: OwnerQuota,
        blobs: Option<ExternalBlobs>,
    ) -> Result<Self, RedisError> {
        let layout = Layout::current();
        layout.check(&redis).await?;
        let changes = redis.subscribe(&redis.keys().channel(events::CHANNEL)).await?;

        let inner = Arc::new(RedisState {
            scripts: Scripts::new(code, redis.keys(), &layout),
            blobs,
            feed: ChangeFeed::new(),
            schedule: SweepSchedule::new(),
            expired: Expired::default(),
            time: RedisTime::of(&redis).await?,
            redis,
            random,
            quota,
            layout,
        });

        let events = tokio::spawn(events::forward(changes, Arc::clone(&inner)));
        Ok(Self { inner, _events: AbortOnDropHandle::new(events) })
    }
}

impl RedisState {
    fn shard_of(&self, owner: &Owner) -> Shard {
        self.redis.keys().shard_of(owner.as_str())
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        let shards = self.redis.keys().shards().map(|shard| async move {
            let mut stored = cmd("HGET");
            stored.arg(shard.single("usage")).arg("*");
            let mut reserved = cmd("HGET");
            reserved.arg(shard.single("reserved")).arg("");

            let stored = self.redis.query::<Option<String>>(&stored);
            let reserved = self.redis.query::<Option<u64>>(&reserved);
            let (stored, reserved) = tokio::try_join!(stored, reserved)?;

            let usage = stored.map_or_else(Usage::default, |stored| read_usage(&stored));
            Ok(Usage { reserved: reserved.unwrap_or_default(), ..usage })
        });

        let shards = try_join_all(shards).await.map_err(unavailable)?;

        Ok(shards.iter().fold(Usage::default(), |total, shard| Usage {
            resources: total.resources + shard.resources,
            bytes: total.bytes + shard.bytes,
            reserved: total.reserved + shard.reserved,
        }))
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        let mut own = cmd("HGET");
        own.arg(self.shard_of(owner).single("usage")).arg(escape(owner.as_str()));
        let usage = self.redis.query::<Option<String>>(&own).await.map_err(unavailable)?;

        Ok(usage.map_or_else(Usage::default, |usage| read_usage(&usage)))
    }
}

/// Reads `<resources> <bytes>`.
fn read_usage(text: &str) -> Usage {
    let (resources, bytes) = text.split_once(' ').unwrap_or_default();
    let number = |text: &str| text.parse().unwrap_or_default();
    Usage { resources: number(resources), bytes: number(bytes), reserved: 0 }
}

#[async_trait]
impl Backend for RedisBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared_location(&self) -> Option<String> {
        Some(self.inner.redis.name())
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let owner = owner.clone();
        let counted = UploadReservation::new(&inner, &owner, uri, reservation);

        Ok(match inner.blobs.clone() {
            Some(blobs) => Box::new(ExternalUpload::new(inner, blobs, owner, counted)),
            None => Box::new(RedisUpload::new(inner, owner, counted)),
        })
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        self.inner.reserve(owner, uri, id, bytes, ttl).await
    }

    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError> {
        self.inner.discard(owner, "", id, keep).await.map_err(unavailable)
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        self.inner.get(owner, uri).await
    }

    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.inner.revisions(owner, uri).await
    }

    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        self.inner.delete(owner, uri, version).await
    }

    fn now(&self) -> Option<Timestamp> {
        Some(self.inner.time.now())
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.inner.page(owner, prefix, after, limit).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.inner.usage().await
    }

    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        self.inner.owners(after, limit).await
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.inner.usage_of(owner).await
    }

    fn quota(&self) -> OwnerQuota {
        self.inner.quota
    }

    async fn disk(&self) -> Option<DiskSpace> {
        match &self.inner.blobs {
            Some(blobs) => blobs.objects().disk_space().await,
            None => None,
        }
    }

    async fn maintain(&self) {
        tokio::join!(self.inner.sweep_on_time(), self.inner.remove_unused_objects());
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
