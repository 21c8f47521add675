//! [`ScriptLimits`]: what a script and its worker may use.

use std::{path::PathBuf, time::Duration};

use crate::ConfinementPolicy;

/// The limits of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptLimits {
    /// The maximum time of one script, with the calls that it makes.
    pub time: Duration,
    /// The maximum memory of one worker process, in bytes, with the program itself.
    pub memory_bytes: u64,
    /// The maximum number of calls of one script, of tools and of operations on handles.
    pub calls: u64,
    /// The maximum number of calls of one script at once. Further ones wait.
    pub calls_at_once: usize,
    /// The maximum size of all answers to the calls of one script, in bytes.
    pub bytes_in: u64,
    /// The maximum size of a returned value, and of any other message of a worker, in bytes.
    pub result_bytes: usize,
    /// The maximum size of the console output that is kept, in bytes.
    pub console_bytes: usize,
    /// The maximum number of scripts at once.
    pub concurrent: usize,
    /// The confinement that a worker must have to run a script.
    pub confinement: ConfinementPolicy,
    /// The program of the worker; see [`QueryLimits::program`](crate::QueryLimits::program).
    pub program: Option<PathBuf>,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            memory_bytes: 256 << 20,
            calls: 1_000,
            calls_at_once: 8,
            bytes_in: 64 << 20,
            result_bytes: 16 << 20,
            console_bytes: 4 << 10,
            concurrent: 4,
            confinement: ConfinementPolicy::default(),
            program: None,
        }
    }
}
