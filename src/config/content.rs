//! `[content]`: stored content over HTTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// The keys of links that instances share in Redis are replaced after a day.
const MAX_EXPIRES: u64 = 24 * 60 * 60;

/// `[content]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContentConfig {
    /// Offer stored content over HTTP: at /resources for scripts with a bearer token, and by the
    /// links of download_url and upload_url. See docs/content.md.
    pub enabled: bool,
    /// Longest lifetime of a link in seconds, at most a day.
    pub max_expires: u64,
    /// Bytes of content that one request or one upload in parts brings. The quota of the owner may
    /// be lower.
    pub upload_bytes: u64,
    /// Seconds that an upload in parts may take, at most `store.max_ttl`. What is incomplete then
    /// is removed.
    pub upload_ttl: u64,
}

impl ContentConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self, max_ttl: u64) -> Result<(), ConfigError> {
        if !(1..=MAX_EXPIRES).contains(&self.max_expires) {
            let problem = format!("it must be between 1 and {MAX_EXPIRES}");
            return Err(ConfigError::new("content.max_expires", problem));
        }

        ConfigError::require_positive("content.upload_bytes", self.upload_bytes)?;
        ConfigError::require_positive("content.upload_ttl", self.upload_ttl)?;
        if self.upload_ttl > max_ttl {
            let problem = format!("it is longer than store.max_ttl ({max_ttl})");
            return Err(ConfigError::new("content.upload_ttl", problem));
        }

        Ok(())
    }
}

impl Default for ContentConfig {
    fn default() -> Self {
        Self { enabled: true, max_expires: MAX_EXPIRES, upload_bytes: 5 << 30, upload_ttl: 3600 }
    }
}
