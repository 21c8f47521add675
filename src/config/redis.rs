//! `[redis]`: connections to Redis and limits of the Redis store.

use std::time::Duration;

use larder_store::{
    redis::RedisSettings,
    store::{OwnerQuota, TotalLimit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// The longest timeout.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// `[redis]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// Seconds that connecting and the response to one command may take together. At most 60.
    pub timeout: f64,
    /// Prefix of all keys and channels. Installations with different prefixes can share one Redis.
    pub prefix: String,
    /// Run missing migrations at startup.
    pub migrate: bool,

    /// Bytes of all owners together: resources, and uploads in progress, counted as those of one
    /// owner are; 0 for no limit. `store.blobs` included.
    pub bytes: u64,
    /// Bytes of one owner: content before compression, metadata, and 1 KiB for each revision.
    /// Uploads in progress count, and so does deleted content until it is removed.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for RedisConfig {
    fn default() -> Self {
        let settings = RedisSettings::new("");
        let quota = OwnerQuota::default();
        Self {
            timeout: settings.timeout.as_secs_f64(),
            prefix: settings.prefix,
            migrate: false,
            bytes: 16 << 30,
            bytes_per_owner: quota.bytes,
            resources_per_owner: quota.resources,
        }
    }
}

impl RedisConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let timeout = Duration::try_from_secs_f64(self.timeout);
        if timeout.is_ok_and(|timeout| !timeout.is_zero() && timeout <= MAX_TIMEOUT) {
            return Ok(());
        }

        let problem =
            format!("it must be more than 0 and at most {} seconds", MAX_TIMEOUT.as_secs());
        Err(ConfigError::new("redis.timeout", problem))
    }

    /// The settings for connections to the Redis at `url`.
    pub(crate) fn settings(&self, url: &str) -> RedisSettings {
        RedisSettings {
            url: url.to_owned(),
            timeout: Duration::from_secs_f64(self.timeout),
            prefix: self.prefix.clone(),
        }
    }

    /// The limits on one owner.
    pub(crate) fn quota(&self) -> OwnerQuota {
        OwnerQuota { bytes: self.bytes_per_owner, resources: self.resources_per_owner }
    }

    /// The limit on all owners together, if there is one.
    pub(crate) fn total(&self) -> Option<TotalLimit> {
        (self.bytes > 0).then_some(TotalLimit { bytes: self.bytes, setting: "redis.bytes" })
    }
}
