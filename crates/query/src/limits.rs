//! [`QueryLimits`]: what a query and its worker may use.

use std::{path::PathBuf, time::Duration};

use super::ConfinementPolicy;

/// The limits of queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// The maximum time of one query.
    pub time: Duration,
    /// How long a query runs although another caller waits for its worker.
    pub share: Duration,
    /// The maximum memory of one worker process, in bytes, with the program itself.
    pub memory_bytes: u64,
    /// The maximum size of all content that one query reads, in bytes.
    pub input_bytes: u64,
    /// The maximum size of a result that is stored, in bytes.
    pub result_bytes: u64,
    /// The maximum number of worker processes at once, idle ones included.
    pub concurrent: usize,
    /// How long an idle worker keeps its tables for the next query.
    pub warm: Duration,
    /// The confinement that a worker must have to run a query.
    pub confinement: ConfinementPolicy,
    /// The program that is started with the argument `query-worker`. By default
    /// the running one, which must be the binary or a server that
    /// `larder::cli::run` starts.
    pub program: Option<PathBuf>,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            share: Duration::from_secs(2),
            memory_bytes: 512 << 20,
            input_bytes: 1 << 30,
            result_bytes: 64 << 20,
            concurrent: 2,
            warm: Duration::from_secs(60),
            confinement: ConfinementPolicy::default(),
            program: None,
        }
    }
}
