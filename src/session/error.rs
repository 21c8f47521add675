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
    /// Where sessions are kept cannot be reached, or does not answer in time.
    #[error("Sessions cannot be reached just now. Try again shortly.")]
    Unavailable,
}

/// Said in one way wherever sessions are kept.
impl SessionError {
    pub(super) fn too_many_sessions(most: usize) -> Self {
        Self::TooMany(format!(
            "There are {most} sessions already (sessions.per_principal). End some with DELETE, or wait until idle ones expire."
        ))
    }

    pub(super) fn too_many_streams(most: usize) -> Self {
        Self::TooMany(format!(
            "This session has {most} calls under way, the most there may be. Wait for some to end."
        ))
    }

    pub(super) fn too_many_subscriptions(most: usize) -> Self {
        Self::TooMany(format!(
            "This session has {most} subscriptions, the most there may be. Unsubscribe from some."
        ))
    }
}
