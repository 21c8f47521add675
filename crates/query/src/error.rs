//! [`QueryError`]: why a query has no result. A model reads the texts.

use larder_records::words::number;
use serde::{Deserialize, Serialize};

/// The reason why a query has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum QueryError {
    /// The query cannot be run. The message says why.
    #[error("{0}")]
    Refused(String),
    /// The content of a table cannot be read. The message says why.
    #[error("{table}: {problem}")]
    Content {
        /// The table.
        table: String,
        /// The problem.
        problem: String,
    },
    /// The query ran too long.
    #[error("Stopped after {seconds} s (query.seconds){}.", progress(*read, *total))]
    Time {
        /// The limit.
        seconds: u64,
        /// The rows that were read so far.
        read: u64,
        /// All rows, if they were counted.
        total: Option<u64>,
    },
    /// The query ran longer than its share of time while another caller waited.
    #[error(
        "Stopped after {share} s (query.share_seconds){}, because another caller waits and all {concurrent} query workers are busy (query.concurrent). Ask for less in one query, or send the same call again later.",
        progress(*read, *total)
    )]
    Yielded {
        /// How long a query runs in any case, in seconds.
        share: u64,
        /// The number of workers.
        concurrent: usize,
        /// The rows that were read so far.
        read: u64,
        /// All rows, if they were counted.
        total: Option<u64>,
    },
    /// The system cannot confine the worker as the server requires.
    #[error(
        "This server runs no queries, because its system cannot confine them by {missing} (query.confinement). Read or search the resource instead."
    )]
    Unconfined {
        /// The missing barriers.
        missing: String,
    },
    /// The query needs too much memory.
    #[error("It needs more than {} MiB (query.memory_bytes): {hint}.", bytes >> 20)]
    Memory {
        /// The limit.
        bytes: u64,
        /// The advice for the caller.
        hint: String,
    },
    /// The result is too large to be stored.
    #[error("The result is larger than {} bytes (query.result_bytes): select less.", number(*bytes))]
    Result {
        /// The limit.
        bytes: u64,
    },
    /// The content is too large.
    #[error("{} bytes are too many for one query, which reads at most {} (query.input_bytes). Search or read a part instead.", number(*bytes), number(*limit))]
    Input {
        /// The size of the content.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// No worker became free.
    #[error(
        "All {concurrent} query workers are busy (query.concurrent). Send the same call again."
    )]
    Busy {
        /// The limit.
        concurrent: usize,
    },
    /// The content cannot be fetched from the store.
    #[error("{0}")]
    Store(String),
    /// The worker could not be started, or failed.
    #[error("The query could not be run.")]
    Failed,
}

impl QueryError {
    /// The advice about memory, by engine.
    pub(super) fn memory(bytes: u64, is_sql: bool) -> Self {
        let hint = if is_sql {
            "select fewer columns or rows, or aggregate"
        } else {
            "drop slurp, or use sql"
        };
        Self::Memory { bytes, hint: hint.into() }
    }
}

fn progress(read: u64, total: Option<u64>) -> String {
    match (read, total) {
        (0 | 1, _) => String::new(),
        (read, Some(total)) => format!("; {} of {} rows were read", number(read), number(total)),
        (read, None) => format!("; {} rows were read", number(read)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting_and_the_next_step() {
        let time = QueryError::Time { seconds: 10, read: 412_000, total: Some(899_299) };
        let expected = "Stopped after 10 s (query.seconds); 412,000 of 899,299 rows were read.";
        assert_eq!(time.to_string(), expected);

        let memory = QueryError::memory(512 << 20, false).to_string();
        let expected = "It needs more than 512 MiB (query.memory_bytes): drop slurp, or use sql.";
        assert_eq!(memory, expected);

        let yielded = QueryError::Yielded { share: 2, concurrent: 4, read: 0, total: None };
        let expected = "Stopped after 2 s (query.share_seconds), because another caller waits and all 4 query workers are busy (query.concurrent). Ask for less in one query, or send the same call again later.";
        assert_eq!(yielded.to_string(), expected);
    }
}
