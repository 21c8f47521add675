//! `[tasks]`: calls that continue as tasks.

use std::time::Duration;

use larder_store::task::TaskLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[tasks]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TasksConfig {
    /// Seconds that a task is kept after its creation. A task that still runs then is cancelled.
    pub ttl: u64,
    /// Tasks of one caller, including finished tasks that are still kept.
    pub per_principal: usize,
    /// Tasks of all callers together, over all instances, finished ones that are kept included; 0
    /// for no limit. In Redis a few more may begin at the same time.
    pub total: usize,
}

impl Default for TasksConfig {
    fn default() -> Self {
        let limits = TaskLimits::default();
        Self { ttl: limits.ttl.as_secs(), per_principal: limits.per_owner, total: limits.total }
    }
}

impl TasksConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive("tasks.ttl", self.ttl)
    }

    /// The limits on tasks.
    pub(crate) fn limits(&self) -> TaskLimits {
        TaskLimits {
            ttl: Duration::from_secs(self.ttl),
            per_owner: self.per_principal,
            total: self.total,
            ..TaskLimits::default()
        }
    }
}
