//! `[store]`, `[memory]` and `[objects]`: storage and time to live of resources.

use std::{num::NonZeroU8, time::Duration};

use larder_store::store::{
    DEFAULT_CACHE_BYTES, DiskSpace, MemoryLimits, ObjectLocation, OwnerQuota, StoreLimits,
    TotalLimit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, StoreUrl};

/// The maximum of `blob_bytes`, since each upload buffers that much.
const MAX_BLOB_BYTES: usize = 16 << 20;

/// `[store]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// Store of resources: `"memory:"`; Redis as `"redis://user:password@host:6379/0"`,
    /// `"redis+cluster://host:7000,host:7001"` or `"redis+sentinel://host:26379/name/0"`
    /// (`"rediss"` instead of `"redis"` for TLS); `"file:///directory"`, created if it is missing;
    /// or `"s3://bucket/prefix"`. Builds with the features gcs and azure also accept
    /// `"gs://bucket/prefix"` and `"az://container/prefix"`. Credentials of buckets come from the
    /// provider's own environment variables. See docs/storage.md.
    pub url: String,
    /// Store of content larger than `blob_bytes` when `store.url` is Redis: `"file:///…"`,
    /// `"s3://…"` and the like, used by this installation only. In Redis when not set.
    pub blobs: Option<String>,
    /// Size in bytes, after compression, above which content is stored in `store.blobs`. At most
    /// 16777216. Each upload buffers this much in memory.
    pub blob_bytes: usize,
    /// Bytes that are kept free on the disk of file:///…, and the size of a reserve beside them,
    /// from which resources are removed when the disk is full all the same; 0 for none. Below it,
    /// content is refused and the server is not ready.
    pub disk_reserve_bytes: u64,

    /// Bytes of memory for content that was searched, read in part or downloaded twice, so that the
    /// next search or download need not decompress it again, and for filters (3 % of text that was
    /// written or searched) by which searches leave out parts; 0 for none. Downloads of more than a
    /// quarter of it are not kept. The caller with the most makes room for others.
    pub cache_bytes: usize,

    /// Time to live of a resource in seconds when none is given: one day.
    pub default_ttl: u64,
    /// Longest time to live in seconds that may be requested: thirty days.
    pub max_ttl: u64,
    /// Number of revisions kept of each resource, the latest included. 1 to 255.
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
            disk_reserve_bytes: DiskSpace::DEFAULT_RESERVE_BYTES,
            cache_bytes: DEFAULT_CACHE_BYTES,
        }
    }
}

impl StoreConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive("store.default_ttl", self.default_ttl)?;
        if self.default_ttl > self.max_ttl {
            return Err(ConfigError::new(
                "store.default_ttl",
                "it must not be longer than store.max_ttl",
            ));
        }

        let place = self.place()?;
        if let Some(blobs) = &self.blobs {
            if !matches!(place, StoreUrl::Redis(_)) {
                let problem =
                    "it is for large content when store.url is Redis, but store.url is not Redis";
                return Err(ConfigError::new("store.blobs", problem));
            }

            ObjectLocation::check(blobs)
                .map_err(|problem| ConfigError::new("store.blobs", problem))?;
        }

        if self.blob_bytes > MAX_BLOB_BYTES {
            return Err(ConfigError::new("store.blob_bytes", "it must be at most 16777216"));
        }

        Ok(())
    }

    /// The kind of place that `store.url` names.
    ///
    /// # Errors
    /// The URL is invalid.
    pub(crate) fn place(&self) -> Result<StoreUrl<'_>, ConfigError> {
        StoreUrl::parse("store.url", &self.url)
    }

    /// The limits on times and revisions.
    pub(crate) fn limits(&self) -> StoreLimits {
        StoreLimits {
            default_ttl: Duration::from_secs(self.default_ttl),
            max_ttl: Duration::from_secs(self.max_ttl),
            revisions: self.revisions.get().into(),
        }
    }
}

/// `[memory]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Bytes of all owners together, counted as those of one owner are. The default fits a server
    /// with 1 GiB of memory.
    pub bytes: u64,
    /// Bytes of one owner: content before compression, metadata, and 1 KiB for each revision.
    /// Uploads in progress count, and so does deleted content until it is removed.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        let limits = MemoryLimits::default();
        Self {
            bytes: limits.bytes,
            bytes_per_owner: limits.per_owner.bytes,
            resources_per_owner: limits.per_owner.resources,
        }
    }
}

impl MemoryConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive("memory.bytes", self.bytes)
    }

    /// The limits of the store in memory.
    pub(crate) fn limits(&self) -> MemoryLimits {
        let per_owner =
            OwnerQuota { bytes: self.bytes_per_owner, resources: self.resources_per_owner };
        MemoryLimits { bytes: self.bytes, per_owner }
    }
}

/// `[objects]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectsConfig {
    /// Bytes of all owners together: resources, and uploads in progress, counted as those of one
    /// owner are; 0 for no limit.
    pub bytes: u64,
    /// Bytes of one owner: content before compression, metadata, and 1 KiB for each revision.
    /// Uploads in progress count, and so does deleted content until it is removed.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for ObjectsConfig {
    fn default() -> Self {
        let quota = OwnerQuota::default();
        Self { bytes: 64 << 30, bytes_per_owner: quota.bytes, resources_per_owner: quota.resources }
    }
}

impl ObjectsConfig {
    /// The limits on one owner.
    pub(crate) fn quota(&self) -> OwnerQuota {
        OwnerQuota { bytes: self.bytes_per_owner, resources: self.resources_per_owner }
    }

    /// The limit on all owners together, if there is one.
    pub(crate) fn total(&self) -> Option<TotalLimit> {
        (self.bytes > 0).then_some(TotalLimit { bytes: self.bytes, setting: "objects.bytes" })
    }
}
