//! [`LogLevel`]: the severity of a log message (RFC 5424, section 6.2.1).

use serde::{Deserialize, Serialize};

/// A severity. More severe levels compare as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Progress of normal work.
    Info,
    /// Normal, but significant.
    Notice,
    /// A condition that may become an error.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// An operator must act immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}
