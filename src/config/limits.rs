//! `[limits]`: limits on requests and responses.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::admission::PrincipalLimits;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// The maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// The maximum number of JSON values in a request body, at every depth.
    pub body_values: usize,
    /// The maximum content of one `resources/read` response, in bytes.
    pub read_bytes: u64,
    /// Requests of one caller within the window; 0 for no limit.
    pub requests_per_window: u32,
    /// The length of the window, in seconds.
    pub window: u64,
    /// Concurrent calls of one caller; 0 for no limit.
    pub concurrent_calls: usize,
    /// Open streams of one caller that wait for notifications; 0 for no limit.
    pub open_streams: usize,
    /// Connections of all callers together. Connections over the limit get a 503.
    pub connections: usize,
}

impl LimitsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("limits.body_bytes", self.body_bytes as u64),
            ("limits.body_values", self.body_values as u64),
            ("limits.read_bytes", self.read_bytes),
            ("limits.window", self.window),
            ("limits.connections", self.connections as u64),
        ];
        positive.iter().try_for_each(|(name, value)| ConfigError::require_positive(name, *value))
    }

    /// The limits on one caller.
    pub fn per_caller(&self) -> PrincipalLimits {
        PrincipalLimits {
            requests: self.requests_per_window,
            window: Duration::from_secs(self.window),
            calls: self.concurrent_calls,
            streams: self.open_streams,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let per_caller = PrincipalLimits::default();
        Self {
            body_bytes: 32 << 20,
            body_values: 200_000,
            read_bytes: 16 << 20,
            requests_per_window: per_caller.requests,
            window: per_caller.window.as_secs(),
            concurrent_calls: per_caller.calls,
            open_streams: per_caller.streams,
            connections: 20_000,
        }
    }
}
