//! What sessions refuse.

/// Each text is fit for the caller's eyes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No such session for this principal.
    #[error("Session not found")]
    NotFound,
    /// No such stream in this session.
    #[error(
        "Last-Event-ID {0:?} names no stream of this session: it is wrong, another session's, or no longer kept. Send the request again."
    )]
    NoStream(String),
    /// Events after the cursor are no longer kept.
    #[error("Events after {0:?} are no longer kept. Send the request again.")]
    Trimmed(String),
    /// A bound was reached.
    #[error("{0}")]
    TooMany(String),
}
