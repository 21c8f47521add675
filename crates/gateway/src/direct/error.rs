//! [`DirectError`]: why a request of a person has no result.

use std::{sync::Arc, time::Duration};

use larder_protocol::ErrorResponse;

use super::DirectLogin;
use crate::{
    error::UpstreamError,
    login::Login,
    start::{SETTING, StartFailure},
    stderr::LastLines,
};

/// The reason why a server cannot be used, or has not answered.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The server does not start or cannot be reached.
    #[error("{reason}")]
    NotStarted {
        /// The reason, such as `exit code 127`.
        reason: String,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// The server wants a login first.
    #[error("a login is necessary")]
    Login(DirectLogin),
    /// The server ended during the request.
    #[error("the server ended ({how})")]
    Ended {
        /// How it ended, such as `signal 9`.
        how: String,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// The server has not answered in time.
    #[error("no answer and no progress within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The server has refused by a status of HTTP.
    #[error("{text}")]
    Status {
        /// The status.
        status: u16,
        /// The status and the body, in words.
        text: String,
    },
    /// The server has refused the request.
    #[error("{}", .0.message)]
    Refused(ErrorResponse),
    /// The server's answer is not what the protocol says.
    #[error("its answer cannot be used: {0}")]
    Invalid(String),
    /// The server needs an answer that it does not get.
    #[error("{0}")]
    Unanswered(String),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

impl DirectError {
    /// Why a start failed.
    pub(super) fn of_start(failed: StartFailure, login: Option<&Arc<Login>>) -> Self {
        let StartFailure { reason, stderr, caller } = failed;
        match caller {
            Some(error) => Self::of(*error, login, &LastLines::default()),
            None => {
                // A person has no such setting.
                let reason = reason.trim_end_matches(SETTING).to_owned();
                Self::NotStarted { reason, stderr }
            }
        }
    }

    /// Why a request failed. `lines` are the last ones of standard error.
    pub(super) fn of(error: UpstreamError, login: Option<&Arc<Login>>, lines: &LastLines) -> Self {
        match error {
            UpstreamError::Login(needed) => match login {
                Some(login) => Self::Login(DirectLogin::new(login, &needed.url)),
                None => Self::Other(needed.message()),
            },
            UpstreamError::Ended { how, .. } => {
                Self::Ended { how: how.to_string(), stderr: lines.show() }
            }
            UpstreamError::NotProcessed { reason, .. } => {
                Self::NotStarted { reason, stderr: lines.show() }
            }
            UpstreamError::TimedOut { after, .. } => Self::TimedOut(after),
            UpstreamError::Status(error) => {
                Self::Status { status: error.status, text: error.to_string() }
            }
            UpstreamError::Refused(error) => Self::Refused(error),
            UpstreamError::Invalid { problem, .. }
            | UpstreamError::InvalidResult { problem, .. } => Self::Invalid(problem),
            UpstreamError::StoredLogin { problem, .. } => Self::Other(problem),
            other => Self::Other(other.to_string()),
        }
    }
}
