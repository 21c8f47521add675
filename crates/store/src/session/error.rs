//! [`SessionError`]: the reasons why a session or stream cannot be used.

use std::time::Duration;

use larder_protocol::{Fault, quote::quoted};

/// An error of the session storage. Its text may be shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The principal has no such session.
    #[error("Session not found")]
    NotFound,
    /// The session has no such stream.
    #[error(
        "Last-Event-ID {} is no event of this session, or its stream is no longer kept. Send the request again.",
        quoted(.0)
    )]
    NoStream(String),
    /// Events after the cursor are no longer kept.
    #[error("Events after {} are no longer kept. Send the request again.", quoted(.0))]
    Trimmed(String),
    /// The principal or the session reached a limit.
    #[error("{0}")]
    TooMany(String),
    /// All principals together reached a limit.
    #[error("{0}")]
    Full(String),
    /// The session storage cannot be reached or does not reply in time.
    #[error("The session storage cannot be reached. Try again shortly.")]
    Unavailable,
}

/// The errors of limits, with the same text for all implementations.
impl SessionError {
    pub(super) fn too_many_sessions(max: usize) -> Self {
        Self::TooMany(format!(
            "You have {max} sessions, the maximum (sessions.per_principal). End some with DELETE, or wait until idle ones expire."
        ))
    }

    pub(super) fn too_many_in_total(max: usize) -> Self {
        Self::Full(format!(
            "This server has {max} sessions, the maximum (sessions.total). Try again when idle ones have expired, or use protocol version 2026-07-28, which needs no session."
        ))
    }

    pub(super) fn too_many_streams(max: usize) -> Self {
        Self::TooMany(format!(
            "This session has {max} running calls, the maximum. Wait until some end."
        ))
    }

    pub(super) fn too_many_subscriptions(max: usize) -> Self {
        Self::TooMany(format!(
            "This session has {max} subscriptions, the maximum. Unsubscribe from some."
        ))
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound => Self::SessionNotFound,
            SessionError::NoStream(_) | SessionError::Trimmed(_) => {
                Self::StreamNotFound(error.to_string())
            }
            SessionError::TooMany(message) => Self::TooMany(message),
            SessionError::Full(message) => {
                Self::Busy { message, retry_after: Duration::from_secs(1) }
            }
            SessionError::Unavailable => Self::SessionsUnavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_event_id_is_quoted_in_part() {
        for error in [SessionError::NoStream, SessionError::Trimmed] {
            let text = error("x".repeat(8_000)).to_string();
            assert!(text.len() < 250 && text.contains("Send the request again"), "{text}");
        }
    }
}
