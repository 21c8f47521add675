//! [`ScriptError`]: why a script has no result. A model reads the texts.

use larder_records::words::number;

use super::ScriptFailure;
use crate::QueryError;

/// The reason why a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The code cannot be parsed, or has thrown an error.
    #[error("{message}{}", place(*at))]
    Thrown {
        /// The error.
        message: String,
        /// The line and the column of the code.
        at: Option<(u32, u32)>,
    },
    /// The code awaits something that nothing can settle.
    #[error("The code awaits a promise that nothing settles: await calls of tools only.")]
    Stuck,
    /// The script ran too long.
    #[error("Stopped after {seconds} s ({setting}).")]
    Time {
        /// The limit.
        seconds: u64,
        /// The setting of the limit.
        setting: &'static str,
    },
    /// The script needs too much memory.
    #[error(
        "It needs more than {} MiB (code.memory_bytes): work with handles, and keep less at once.",
        bytes >> 20
    )]
    Memory {
        /// The limit.
        bytes: u64,
    },
    /// The script recurs too deeply, in a way that it cannot catch.
    #[error("It needs more stack than code.memory_bytes allows: recur less deeply.")]
    Stack,
    /// The script makes too many calls.
    #[error("It makes more than {} calls (code.calls).", number(*limit))]
    Calls {
        /// The limit.
        limit: u64,
    },
    /// The answers to the calls are too large together.
    #[error(
        "The answers to its calls have more than {} bytes together (code.bytes_in): take parts of handles.",
        number(*limit)
    )]
    BytesIn {
        /// The limit.
        limit: u64,
    },
    /// The returned value is too large.
    #[error(
        "It returns a value of more than {} bytes (code.result_bytes): store parts of it by larder.store.",
        number(*limit as u64)
    )]
    Result {
        /// The limit.
        limit: usize,
    },
    /// No worker became free.
    #[error(
        "All {concurrent} workers for code are busy (code.concurrent). Send the same call again."
    )]
    Busy {
        /// The limit.
        concurrent: usize,
    },
    /// The system cannot confine the worker as the server requires.
    #[error(
        "This server runs no code, because its system cannot confine it by {missing} (query.confinement)."
    )]
    Unconfined {
        /// The missing barriers.
        missing: String,
    },
    /// The worker could not be started, or failed.
    #[error("The code could not be run.")]
    Failed,
}

impl ScriptError {
    /// The error that a worker has told.
    pub(super) fn told(
        failure: ScriptFailure,
        time: Self,
        memory_bytes: u64,
        result_bytes: usize,
    ) -> Self {
        match failure {
            ScriptFailure::Thrown { message, at } => Self::Thrown { message, at },
            ScriptFailure::Time => time,
            ScriptFailure::Memory => Self::Memory { bytes: memory_bytes },
            ScriptFailure::Result => Self::Result { limit: result_bytes },
            ScriptFailure::Stuck => Self::Stuck,
        }
    }
}

impl From<QueryError> for ScriptError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Unconfined { missing } => Self::Unconfined { missing },
            _ => Self::Failed,
        }
    }
}

fn place(at: Option<(u32, u32)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(" (line {line}, column {column})"))
}
