//! `[store]`, `[memory]` and `[objects]`: where resources lie, and for how long.

use std::num::NonZeroU8;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::store::{ObjectPlace, OwnerQuota};

/// Each upload that is under way may hold that much.
const MOST_HELD: usize = 16 << 20;

/// `[store]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `memory:`; Redis as in [`RedisSettings::url`](crate::redis::RedisSettings::url);
    /// `file:///directory`, or `s3://bucket/prefix`; `gs://bucket/prefix` and
    /// `az://container/prefix` where they are built in.
    pub url: String,
    /// Where content of more than [`blob_bytes`](Self::blob_bytes) lies when the
    /// rest lies in Redis: one of the latter, of this installation alone. In
    /// Redis as well by default.
    pub blobs: Option<String>,
    /// In bytes as they are kept; so much of each upload is held in memory.
    pub blob_bytes: usize,
    /// Seconds that a resource lives when nobody says otherwise.
    pub default_ttl: u64,
    /// The most seconds that may be asked for.
    pub max_ttl: u64,
    /// How many revisions of a resource are kept, the present one included.
    pub revisions: NonZeroU8,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let day = 24 * 60 * 60;
        let revisions = NonZeroU8::new(3).expect("it is not zero");
        Self {
            url: "memory:".into(),
            default_ttl: day,
            max_ttl: 30 * day,
            revisions,
            blobs: None,
            blob_bytes: 1 << 20,
        }
    }
}

impl StoreConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_positive("store.default_ttl", self.default_ttl)?;
        if self.default_ttl > self.max_ttl {
            return Err(ConfigError::new("store.default_ttl", "it is longer than store.max_ttl"));
        }
        if ObjectPlace::is_for(&self.url) {
            ObjectPlace::check(&self.url)
                .map_err(|problem| ConfigError::new("store.url", problem))?;
        }
        if let Some(blobs) = &self.blobs {
            if !self.url.starts_with("redis") {
                let problem =
                    "it is for large content beside Redis, and store.url is something else";
                return Err(ConfigError::new("store.blobs", problem));
            }
            ObjectPlace::check(blobs)
                .map_err(|problem| ConfigError::new("store.blobs", problem))?;
        }
        if self.blob_bytes > MOST_HELD {
            return Err(ConfigError::new("store.blob_bytes", "it is more than 16777216"));
        }
        Ok(())
    }
}

/// `[memory]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Bytes of content in all, counted as they came, before compression.
    pub bytes: u64,
    /// Bytes of content of one owner.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        let limits = crate::store::MemoryLimits::default();
        Self {
            bytes: limits.bytes,
            bytes_per_owner: limits.per_owner.bytes,
            resources_per_owner: limits.per_owner.resources,
        }
    }
}

impl MemoryConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_positive("memory.bytes", self.bytes)
    }
}

/// `[objects]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectsConfig {
    /// Bytes of content of one owner, counted before compression.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for ObjectsConfig {
    fn default() -> Self {
        let quota = OwnerQuota::default();
        Self { bytes_per_owner: quota.bytes, resources_per_owner: quota.resources }
    }
}
