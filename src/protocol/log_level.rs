//! How severe a log message is (RFC 5424, 6.2.1).

use serde::{Deserialize, Serialize};

/// Ordered: what is worse is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// How the work goes.
    Info,
    /// Normal, but worth a note.
    Notice,
    /// Something that may become an error.
    Warning,
    /// Something failed.
    Error,
    /// A part of the system failed.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}
