//! `[limits]`: bounds on requests and answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::admission::PrincipalLimits;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// The most bytes that a request's body may have.
    pub body_bytes: usize,
    /// The most JSON values that a request's body may have, at every depth.
    pub body_values: usize,
    /// The most bytes that `resources/read` gives at once.
    pub read_bytes: u64,
    /// Requests of one caller in a window; 0 is any number.
    pub requests_per_window: u32,
    /// The window, in seconds.
    pub window: u64,
    /// Calls of one caller that run at the same time; 0 is any number.
    pub concurrent_calls: usize,
    /// Streams that one caller holds open to hear of changes; 0 is any number.
    pub open_streams: usize,
    /// Connections of all callers together. Whoever comes then is told to try
    /// again.
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
        positive.iter().try_for_each(|(name, value)| ConfigError::unless_positive(name, *value))
    }

    /// Bounds for one caller.
    pub fn principals(&self) -> PrincipalLimits {
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
        let principals = PrincipalLimits::default();
        Self {
            body_bytes: 32 << 20,
            body_values: 200_000,
            read_bytes: 16 << 20,
            requests_per_window: principals.requests,
            window: principals.window.as_secs(),
            concurrent_calls: principals.calls,
            open_streams: principals.streams,
            connections: 20_000,
        }
    }
}
