//! What goes wrong with Redis.

use std::time::Duration;

use ::redis::{ErrorKind, ServerErrorKind};

/// Texts are for the log and for whoever starts the server, not for clients;
/// no text holds a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
    /// It cannot be reached, or the connection was lost before the answer
    /// came: what was asked for may or may not have been done.
    #[error("Redis cannot be reached: {0}")]
    Unreachable(#[source] ::redis::RedisError),
    /// It did not answer in time; what was asked for may still be done.
    #[error("Redis did not answer within {0:?}")]
    Slow(Duration),
    /// Its memory is full.
    #[error("Redis is out of memory: {0}")]
    Full(#[source] ::redis::RedisError),
    /// It answers, and refuses.
    #[error("Redis refuses: {0}")]
    Refused(#[source] ::redis::RedisError),
    /// The answer is not what it should be.
    #[error("Redis gave an unexpected answer: {0}")]
    Unexpected(#[source] ::redis::RedisError),
    /// What lies there is laid out in another way than this version reads.
    #[error(transparent)]
    Layout(#[from] super::layout::LayoutError),
}

impl RedisError {
    pub(super) fn of(error: ::redis::RedisError, timeout: Duration) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::Slow(timeout),
            _ if error.code() == Some("OOM") => Self::Full(error),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::Unexpected(error),
            ErrorKind::Io
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::TryAgain,
            ) => Self::Unreachable(error),
            _ => Self::Refused(error),
        }
    }
}
