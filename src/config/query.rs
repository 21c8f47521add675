//! `[query]`: the tool query_resource.

use std::time::Duration;

use larder_query::{ConfinementPolicy, QueryLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[query]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueryConfig {
    /// Offer the tool.
    pub enabled: bool,

    /// The longest that one query runs, in seconds.
    pub seconds: u64,

    /// How long a query runs although another caller waits and all processes are busy, in seconds.
    /// Then the query that runs longest is stopped.
    pub share_seconds: u64,
    /// The most memory of one query, in bytes, with the process in which it runs. At least
    /// 134217728.
    pub memory_bytes: u64,
    /// The most content that one query reads, in bytes.
    pub input_bytes: u64,
    /// The largest result of a query that is stored as a resource, in bytes.
    pub result_bytes: u64,

    /// Queries at once, and processes for them, idle ones included. More wait for a turn.
    pub concurrent: usize,
    /// How long an idle process keeps its tables for the next query over the same content, in
    /// seconds; 0 to keep none.
    pub warm_seconds: u64,

    /// The rule for systems that cannot confine the processes by Landlock and seccomp:
    /// `"required"` refuses queries, `"best_effort"` runs them all the same. Systems other than
    /// Linux have neither, and `"best_effort"` as default.
    pub confinement: ConfinementPolicy,
}

/// The least memory: the program, its stack and its allocator take about half of that.
const MIN_MEMORY_BYTES: u64 = 128 << 20;

impl QueryConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.memory_bytes < MIN_MEMORY_BYTES {
            let problem = format!("it must be at least {MIN_MEMORY_BYTES}");
            return Err(ConfigError::new("query.memory_bytes", problem));
        }

        let positive = [
            ("query.seconds", self.seconds),
            ("query.share_seconds", self.share_seconds),
            ("query.input_bytes", self.input_bytes),
            ("query.result_bytes", self.result_bytes),
            ("query.concurrent", self.concurrent as u64),
        ];
        positive.iter().try_for_each(|(name, value)| ConfigError::require_positive(name, *value))
    }

    /// The limits of queries.
    pub fn limits(&self) -> QueryLimits {
        QueryLimits {
            time: Duration::from_secs(self.seconds),
            share: Duration::from_secs(self.share_seconds),
            memory_bytes: self.memory_bytes,
            input_bytes: self.input_bytes,
            result_bytes: self.result_bytes,
            concurrent: self.concurrent,
            warm: Duration::from_secs(self.warm_seconds),
            confinement: self.confinement,
            program: None,
        }
    }
}

impl Default for QueryConfig {
    fn default() -> Self {
        let limits = QueryLimits::default();
        Self {
            enabled: true,
            seconds: limits.time.as_secs(),
            share_seconds: limits.share.as_secs(),
            memory_bytes: limits.memory_bytes,
            input_bytes: limits.input_bytes,
            result_bytes: limits.result_bytes,
            concurrent: limits.concurrent,
            warm_seconds: limits.warm.as_secs(),
            confinement: limits.confinement,
        }
    }
}
