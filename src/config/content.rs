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
    /// Whether stored content can be read and deleted over HTTP at `/resources`, and downloaded
    /// by links of download_url.
    pub enabled: bool,
    /// The longest lifetime of a link in seconds, at most a day.
    pub max_expires: u64,
}

impl Default for ContentConfig {
    fn default() -> Self {
        Self { enabled: true, max_expires: MAX_EXPIRES }
    }
}

impl ContentConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if (1..=MAX_EXPIRES).contains(&self.max_expires) {
            return Ok(());
        }
        let problem = format!("it must be between 1 and {MAX_EXPIRES}");
        Err(ConfigError::new("content.max_expires", problem))
    }
}
