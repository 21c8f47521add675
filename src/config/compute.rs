//! `[compute]`: work for the CPU.

use std::time::Duration;

use larder_runtime::compute::ComputeLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[compute]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ComputeConfig {
    /// Threads; 0 for one more than the machine has cores. One caller uses all but one of them.
    pub threads: usize,
    /// Pieces of work of one caller that wait for a thread.
    pub queued_per_owner: usize,
    /// Pieces of work of all callers that wait for a thread.
    pub queued: usize,
    /// Searches that run at the same time; half of them for one caller. The others wait.
    pub searches: usize,
    /// Seconds that one search may take.
    pub search_seconds: u64,
}

impl ComputeConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("compute.queued_per_owner", self.queued_per_owner as u64),
            ("compute.queued", self.queued as u64),
            ("compute.searches", self.searches as u64),
            ("compute.search_seconds", self.search_seconds),
        ];
        positive
            .iter()
            .try_for_each(|(name, value)| ConfigError::require_positive(name, *value))?;

        if self.threads > 1024 {
            return Err(ConfigError::new("compute.threads", "it must be at most 1024"));
        }

        Ok(())
    }

    /// The limits of this process's CPU work.
    pub(crate) fn limits(&self) -> ComputeLimits {
        ComputeLimits {
            threads: self.threads,
            queued_per_owner: self.queued_per_owner,
            queued: self.queued,
            searches: self.searches,
            search_time: Duration::from_secs(self.search_seconds),
        }
    }
}

impl Default for ComputeConfig {
    fn default() -> Self {
        let ComputeLimits { threads, queued_per_owner, queued, searches, search_time } =
            ComputeLimits::default();
        let search_seconds = search_time.as_secs();
        Self { threads, queued_per_owner, queued, searches, search_seconds }
    }
}
