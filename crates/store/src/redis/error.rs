//! [`RedisError`]: the errors of Redis, classified by how a caller can react.

use std::time::Duration;

use ::redis::ErrorKind;

/// An error of Redis. Its text is for operators, not for clients, and contains no password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// Redis cannot be reached, or the connection was lost before the reply: the
    /// command may have been executed.
    #[error("Redis cannot be reached: {0}")]
    Unreachable(#[source] ::redis::RedisError),
    /// No reply within the timeout; the command may still be executed.
    #[error("Redis did not reply within {0:?}")]
    Timeout(Duration),
    /// Redis has reached its memory limit.
    #[error("Redis is out of memory: {0}")]
    Full(#[source] ::redis::RedisError),
    /// Redis replied with another error.
    #[error("Redis refused the command: {0}")]
    Refused(#[source] ::redis::RedisError),
    /// The reply has an unexpected type or format.
    #[error("Unexpected reply from Redis: {0}")]
    Unexpected(#[source] ::redis::RedisError),
    /// The stored data has another layout than this version reads.
    #[error(transparent)]
    Layout(#[from] super::layout::LayoutError),
}

/// Error codes of a server that cannot serve requests at present.
const UNAVAILABLE: [&str; 6] =
    ["LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", READ_ONLY];

/// The error code of a server that is not the primary.
const READ_ONLY: &str = "READONLY";

impl RedisError {
    pub(super) fn classify(error: ::redis::RedisError, timeout: Duration) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::Timeout(timeout),
            _ if has_code(&error, &["OOM"]) => Self::Full(error),
            _ if has_code(&error, &UNAVAILABLE) => Self::Unreachable(error),
            ErrorKind::Io
            | ErrorKind::ClusterConnectionNotFound
            // Sentinels name no primary during a failover.
            | ErrorKind::MasterNameNotFoundBySentinel => Self::Unreachable(error),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::Unexpected(error),
            _ => Self::Refused(error),
        }
    }
}

/// Whether the connection is unusable after this error.
pub(super) fn ends_connection(error: &::redis::RedisError) -> bool {
    error.is_unrecoverable_error() || error.is_timeout() || is_read_only(error)
}

/// Whether the server accepts no writes because another server is the primary.
pub(super) fn is_read_only(error: &::redis::RedisError) -> bool {
    has_code(error, &[READ_ONLY])
}

/// Whether the server does not have the script loaded.
pub(super) fn is_unknown_script(error: &::redis::RedisError) -> bool {
    has_code(error, &["NOSCRIPT"])
}

/// Whether the error, or an error within a pipeline, has one of these codes.
fn has_code(error: &::redis::RedisError, codes: &[&str]) -> bool {
    let matches = |code: &str| codes.contains(&code);
    error.code().is_some_and(matches)
        || error.clone().into_server_errors().is_some_and(|errors| {
            errors.iter().any(|(_, error)| {
                matches(error.code())
                    || error.details().and_then(code_within_script).is_some_and(matches)
            })
        })
}

/// The code of an error inside a script. Redis before version 7 reports it within the text of
/// another error.
fn code_within_script(text: &str) -> Option<&str> {
    let (_, failure) = text.strip_prefix("Error running script")?.split_once(": -")?;
    failure.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> ::redis::RedisError {
        let reply = ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        reply.and_then(::redis::Value::extract_error).expect_err("it is an error")
    }

    #[test]
    fn the_code_of_an_error_inside_a_script_is_found_in_every_version_of_redis() {
        let seven = |error: &str| parsed(&format!("{error} script: f1ff, on @user_script:211."));
        let six = |error: &str| {
            let line = "@user_script:211: @user_script: 211";
            parsed(&format!("ERR Error running script (call to f_1ff): {line}: -{error}"))
        };

        for script in [seven, six] {
            let full = script("OOM command not allowed when used memory > 'maxmemory'.");
            assert!(matches!(RedisError::classify(full, Duration::ZERO), RedisError::Full(_)));
            let read_only = script("READONLY You can't write against a read only replica.");

            assert!(is_read_only(&read_only) && ends_connection(&read_only));

            let wrong = script("WRONGTYPE Operation against a key holding the wrong kind of value");
            assert!(!is_read_only(&wrong));
            assert!(matches!(RedisError::classify(wrong, Duration::ZERO), RedisError::Refused(_)));
        }

        let quoted = parsed("ERR unknown command 'x', with args beginning with: -OOM");
        assert!(matches!(RedisError::classify(quoted, Duration::ZERO), RedisError::Refused(_)));
    }
}
