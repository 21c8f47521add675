//! `[sessions]`: sessions of clients before 2026-07-28, and their streams.

use std::time::Duration;

use larder_store::session::SessionLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, StoreUrl};

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsConfig {
    /// Store of sessions and tasks: `"memory:"` or Redis. When not set: the Redis of
    /// `store.url`, or memory where `store.url` is not Redis.
    pub url: Option<String>,

    /// Seconds that a session lives without a request or an open stream.
    pub idle: u64,
    /// Seconds that a finished stream can still be resumed.
    pub replay: u64,

    /// Sessions of one caller.
    pub per_principal: usize,
    /// Sessions of all callers together, over all instances; 0 for no limit. In Redis a few more
    /// may begin at the same time.
    pub total: usize,

    /// Bytes of finished streams that an instance keeps for resumption, for one caller. Answers
    /// beyond it reach only a client that is connected; others are told to send the request again.
    pub replay_bytes_per_principal: usize,
    /// The limit of all callers of an instance together.
    pub replay_bytes: usize,

    /// Delete the resources that were created in a session when the client ends it. Otherwise they
    /// live until they expire.
    pub delete_resources: bool,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        let limits = SessionLimits::default();
        Self {
            url: None,
            idle: limits.idle.as_secs(),
            replay: limits.replay.as_secs(),
            per_principal: limits.sessions_per_principal,
            total: limits.sessions_total,
            replay_bytes_per_principal: limits.replay_bytes_per_principal,
            replay_bytes: limits.replay_bytes,
            delete_resources: false,
        }
    }
}

impl SessionsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive("sessions.idle", self.idle)?;
        self.place().map(drop)
    }

    /// The kind of place that `sessions.url` names: memory or Redis. `None` without a URL.
    ///
    /// # Errors
    /// The URL is neither.
    pub(crate) fn place(&self) -> Result<Option<StoreUrl<'_>>, ConfigError> {
        let Some(url) = &self.url else { return Ok(None) };

        match StoreUrl::parse("sessions.url", url) {
            Ok(place @ (StoreUrl::Memory | StoreUrl::Redis(_))) => Ok(Some(place)),
            // The URL is not shown, because it may contain a password.
            Ok(StoreUrl::Objects(_)) | Err(_) => {
                Err(ConfigError::new("sessions.url", "use \"memory:\" or \"redis://…\""))
            }
        }
    }

    /// The limits on sessions and their streams.
    pub(crate) fn limits(&self) -> SessionLimits {
        SessionLimits {
            idle: Duration::from_secs(self.idle),
            replay: Duration::from_secs(self.replay),
            sessions_per_principal: self.per_principal,
            sessions_total: self.total,
            replay_bytes_per_principal: self.replay_bytes_per_principal,
            replay_bytes: self.replay_bytes,
            ..SessionLimits::default()
        }
    }
}
