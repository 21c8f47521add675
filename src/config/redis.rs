//! `[redis]`: how to deal with Redis, wherever something lies there.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::redis::RedisSettings;

/// Longer than anybody waits for an answer.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// `[redis]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// How many seconds connecting and the answer to one command may take.
    pub timeout: f64,
    /// What all keys and channels begin with.
    pub prefix: String,
    /// Whether migrations that are missing are run at the start.
    pub migrate: bool,
    /// Bytes of content of one owner.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for RedisConfig {
    fn default() -> Self {
        let settings = RedisSettings::new("");
        let quota = crate::store::OwnerQuota::default();
        Self {
            timeout: settings.timeout.as_secs_f64(),
            prefix: settings.prefix,
            migrate: false,
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

    /// How to reach it, where that URL says that something lies there.
    pub(super) fn at(&self, url: &str) -> Option<RedisSettings> {
        RedisSettings::is_for(url).then(|| RedisSettings {
            timeout: Duration::from_secs_f64(self.timeout),
            prefix: self.prefix.clone(),
            ..RedisSettings::new(url)
        })
    }
}
