//! What goes wrong with Redis.

use std::time::Duration;

use ::redis::ErrorKind;

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

/// What a server says that cannot serve now, or not any more.
const ABSENT: [&str; 6] = ["LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", READ_ONLY];

/// What a server says that another one has taken over from.
const READ_ONLY: &str = "READONLY";

impl RedisError {
    pub(super) fn of(error: ::redis::RedisError, timeout: Duration) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::Slow(timeout),
            _ if says(&error, &["OOM"]) => Self::Full(error),
            _ if says(&error, &ABSENT) => Self::Unreachable(error),
            ErrorKind::Io
            | ErrorKind::ClusterConnectionNotFound
            // Also while Sentinels are choosing another.
            | ErrorKind::MasterNameNotFoundBySentinel => Self::Unreachable(error),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::Unexpected(error),
            _ => Self::Refused(error),
        }
    }
}

/// Whether the connection is of no more use after this error.
pub(super) fn ends_connection(error: &::redis::RedisError) -> bool {
    error.is_unrecoverable_error() || error.is_timeout() || is_read_only(error)
}

/// Whether the server takes no writes: another one does.
pub(super) fn is_read_only(error: &::redis::RedisError) -> bool {
    says(error, &[READ_ONLY])
}

/// Whether the server has to be sent the script's code first.
pub(super) fn is_unknown_script(error: &::redis::RedisError) -> bool {
    says(error, &["NOSCRIPT"])
}

/// Whether an answer, or one of those in a pipeline, begins with such a word.
fn says(error: &::redis::RedisError, words: &[&str]) -> bool {
    let said = |code: &str| words.contains(&code);
    error.code().is_some_and(said)
        || error.clone().into_server_errors().is_some_and(|errors| {
            errors.iter().any(|(_, error)| {
                said(error.code()) || error.details().and_then(within_script).is_some_and(said)
            })
        })
}

/// The first word of what a script failed with: before Redis 7 it stands within the text of
/// another error.
fn within_script(text: &str) -> Option<&str> {
    let (_, failure) = text.strip_prefix("Error running script")?.split_once(": -")?;
    failure.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> ::redis::RedisError {
        let answer = ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        answer.and_then(::redis::Value::extract_error).expect_err("it is an error")
    }

    #[test]
    fn what_a_script_fails_with_is_known_in_every_version_of_redis() {
        let seven = |said: &str| answered(&format!("{said} script: f1ff, on @user_script:211."));
        let six = |said: &str| {
            let place = "@user_script:211: @user_script: 211";
            answered(&format!("ERR Error running script (call to f_1ff): {place}: -{said}"))
        };
        for script in [seven, six] {
            let full = script("OOM command not allowed when used memory > 'maxmemory'.");
            assert!(matches!(RedisError::of(full, Duration::ZERO), RedisError::Full(_)));
            let read_only = script("READONLY You can't write against a read only replica.");
            assert!(is_read_only(&read_only) && ends_connection(&read_only));
            let wrong = script("WRONGTYPE Operation against a key holding the wrong kind of value");
            assert!(!is_read_only(&wrong));
            assert!(matches!(RedisError::of(wrong, Duration::ZERO), RedisError::Refused(_)));
        }
        let quoted = answered("ERR unknown command 'x', with args beginning with: -OOM");
        assert!(matches!(RedisError::of(quoted, Duration::ZERO), RedisError::Refused(_)));
    }
}
