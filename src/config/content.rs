//! `[content]`: stored content over HTTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[content]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContentConfig {
    /// Whether stored content can be read, stored and deleted over HTTP at `/resources`.
    pub enabled: bool,
    /// The maximum size of content that is received over HTTP, in bytes. The quota of the owner
    /// may be lower.
    pub upload_bytes: u64,
    /// Seconds that an upload in parts may take. What is incomplete then is removed.
    pub upload_ttl: u64,
}

impl ContentConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self, max_ttl: u64) -> Result<(), ConfigError> {
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
        Self { enabled: true, upload_bytes: 5 << 30, upload_ttl: 3600 }
    }
}
