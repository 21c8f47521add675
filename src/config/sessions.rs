//! `[sessions]`: legacy sessions and their streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::redis::RedisSettings;

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsConfig {
    /// `memory:`, or Redis; where nothing is said, Redis if resources lie there.
    pub url: Option<String>,
    /// Seconds that a session lives without a request or a connection.
    pub idle: u64,
    /// Seconds that a finished stream can still be resumed.
    pub replay: u64,
    /// Sessions of one caller.
    pub per_principal: usize,
    /// Whether resources created in a session go when the client ends it;
    /// otherwise they live until they expire.
    pub delete_resources: bool,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        let limits = crate::session::SessionLimits::default();
        Self {
            url: None,
            idle: limits.idle.as_secs(),
            replay: limits.replay.as_secs(),
            per_principal: limits.sessions_per_principal,
            delete_resources: false,
        }
    }
}

impl SessionsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_positive("sessions.idle", self.idle)?;
        if let Some(url) = &self.url
            && !url.starts_with("memory:")
            && !RedisSettings::is_for(url)
        {
            // It may hold a password.
            let problem = "it is neither \"memory:\" nor \"redis://…\"";
            return Err(ConfigError::new("sessions.url", problem));
        }
        Ok(())
    }
}
