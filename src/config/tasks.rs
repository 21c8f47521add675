//! `[tasks]`: calls that go on after their request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[tasks]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TasksConfig {
    /// Seconds that a task is kept, from its beginning. One that still runs
    /// then is cancelled.
    pub ttl: u64,
    /// Tasks of one caller, ended ones that are still kept included.
    pub per_principal: usize,
}

impl Default for TasksConfig {
    fn default() -> Self {
        let limits = crate::task::TaskLimits::default();
        Self { ttl: limits.ttl.as_secs(), per_principal: limits.per_owner }
    }
}

impl TasksConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_positive("tasks.ttl", self.ttl)
    }
}
