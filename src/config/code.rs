//! `[code]`: the tool run_code.

use std::time::Duration;

use larder_query::{ConfinementPolicy, ScriptLimits};
use larder_server::tools::CodeWrites;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[code]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodeConfig {
    /// Offer the tool. Needs `query.enabled`.
    pub enabled: bool,
    /// Tools that do not say that they only read: `"ask"` asks the user of the host once for each
    /// run, and refuses them where nobody can be asked; `"allow"` calls them.
    pub writes: CodeWrites,

    /// The longest that one run takes, in seconds, with the calls that it makes.
    pub seconds: u64,
    /// The most memory of one run, in bytes, with the process in which it runs. At least
    /// 134217728.
    pub memory_bytes: u64,
    /// The most calls of one run: of tools, and of operations on stored content.
    pub calls: u64,
    /// The most calls of one run at once. Further ones wait.
    pub calls_at_once: usize,
    /// The most bytes of all answers to the calls of one run.
    pub bytes_in: u64,
    /// The largest value that code returns, in bytes. More than fits a result is stored.
    pub result_bytes: usize,
    /// The most console output that a result shows, in bytes.
    pub console_bytes: usize,
    /// Runs at once, each in a process of its own. More wait for a turn.
    pub concurrent: usize,
}

/// The least memory: the program, its stack and its allocator take about half of that.
const MIN_MEMORY_BYTES: u64 = 128 << 20;

impl CodeConfig {
    pub(super) fn check(&self, has_queries: bool) -> Result<(), ConfigError> {
        if self.enabled && !has_queries {
            return Err(ConfigError::new("code.enabled", "it needs query.enabled"));
        }
        if self.memory_bytes < MIN_MEMORY_BYTES {
            let problem = format!("it must be at least {MIN_MEMORY_BYTES}");
            return Err(ConfigError::new("code.memory_bytes", problem));
        }

        let positive = [
            ("code.seconds", self.seconds),
            ("code.calls", self.calls),
            ("code.calls_at_once", self.calls_at_once as u64),
            ("code.bytes_in", self.bytes_in),
            ("code.result_bytes", self.result_bytes as u64),
            ("code.console_bytes", self.console_bytes as u64),
            ("code.concurrent", self.concurrent as u64),
        ];
        positive.iter().try_for_each(|(name, value)| ConfigError::require_positive(name, *value))
    }

    /// The limits of runs, in workers that are confined as those of queries.
    pub fn limits(&self, confinement: ConfinementPolicy) -> ScriptLimits {
        ScriptLimits {
            time: Duration::from_secs(self.seconds),
            memory_bytes: self.memory_bytes,
            calls: self.calls,
            calls_at_once: self.calls_at_once,
            bytes_in: self.bytes_in,
            result_bytes: self.result_bytes,
            console_bytes: self.console_bytes,
            concurrent: self.concurrent,
            confinement,
            program: None,
        }
    }
}

impl Default for CodeConfig {
    fn default() -> Self {
        let limits = ScriptLimits::default();
        Self {
            enabled: false,
            writes: CodeWrites::default(),
            seconds: limits.time.as_secs(),
            memory_bytes: limits.memory_bytes,
            calls: limits.calls,
            calls_at_once: limits.calls_at_once,
            bytes_in: limits.bytes_in,
            result_bytes: limits.result_bytes,
            console_bytes: limits.console_bytes,
            concurrent: limits.concurrent,
        }
    }
}
