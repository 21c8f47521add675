//! Protocol errors, independent of the era. `era` gives them their codes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ProtocolVersion;
use crate::quote::shortened;

/// A protocol error. Its text is for the caller and says what to do. Codes and
/// HTTP statuses differ between eras; see `era`.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Not JSON, or not UTF-8 (-32700).
    #[error("{0}")]
    Parse(String),
    /// JSON, but not a JSON-RPC message (-32600).
    #[error("{0}")]
    InvalidRequest(String),
    /// The method does not exist, or not in this era (-32601).
    #[error("Method not found: {}", shortened(.0))]
    MethodNotFound(String),
    /// Parameters that the method does not accept (-32602).
    #[error("{message}")]
    InvalidParams {
        /// The message: what is wrong and what to do.
        message: String,
        /// Machine-readable details.
        data: Option<Value>,
    },
    /// The error of a server behind this one, with its own code.
    #[error("{message}")]
    Relayed {
        /// The JSON-RPC code of the error.
        code: i32,
        /// The message of the other server, bounded.
        message: String,
        /// Machine-readable details, bounded.
        data: Option<Box<Value>>,
    },
    /// `_meta` lacks a member that is required in the modern era (-32602).
    #[error("{0}")]
    MissingMeta(String),
    /// The caller has no resource of this URI (-32602 modern, -32002 legacy).
    #[error("{message}")]
    ResourceNotFound {
        /// The requested URI.
        uri: String,
        /// Whether the resource expired, and what to do.
        message: String,
    },
    /// A failure of the server; the details are only in its log (-32603).
    #[error("{0}")]
    Internal(String),
    /// A backend cannot be reached; the client may retry (-32603).
    #[error("{0}")]
    Unavailable(String),
    /// A header is missing or contradicts the body (-32020).
    #[error("Header mismatch: {0}")]
    HeaderMismatch(String),
    /// The call needs a capability that the client does not declare (-32021).
    #[error("The client does not declare a capability that this call needs: {required}")]
    MissingCapability {
        /// The capabilities to declare.
        required: Value,
    },
    /// A protocol version that this server does not support (-32022).
    #[error("Unsupported protocol version: {requested}")]
    UnsupportedVersion {
        /// The requested version.
        requested: String,
        /// The supported versions, newest first.
        supported: Vec<String>,
    },
    /// The session ended or never existed (HTTP 404).
    #[error(
        "Session not found: it ended or expired. Send initialize again without Mcp-Session-Id."
    )]
    SessionNotFound,
    /// The stream of a `Last-Event-ID` was removed, trimmed or belongs to another
    /// session (HTTP 404).
    #[error("{0}")]
    StreamNotFound(String),
    /// The session store cannot be reached; the client may retry (-32603, HTTP 503).
    #[error("{0}")]
    SessionsUnavailable(String),
    /// The caller's token lacks a scope (HTTP 403; -32600).
    #[error("This needs a token with the scope: {}", required.join(" "))]
    InsufficientScope {
        /// All scopes that the request needs, not only the missing ones.
        required: Vec<String>,
    },
    /// The caller's token expired while the call ran (-32600).
    #[error(
        "The token expired while the request ran, so its result is not sent. Send the request again with a new token."
    )]
    TokenExpired,
    /// The call took too long (-32603).
    #[error(
        "This took longer than {} seconds (limits.call_timeout) and was stopped, perhaps with a part of its work done. Ask for less at once.",
        limit.as_secs()
    )]
    TimedOut {
        /// The time that a call may take.
        limit: std::time::Duration,
    },
    /// The caller reached one of its limits (HTTP 429).
    #[error("{message}")]
    Limited {
        /// Names the setting of the limit.
        message: String,
        /// The delay before a retry.
        retry_after: std::time::Duration,
    },
    /// All callers together reached a limit of the server (-32603, HTTP 503).
    #[error("{message}")]
    Busy {
        /// Names the setting of the limit.
        message: String,
        /// The delay before a retry.
        retry_after: std::time::Duration,
    },
    /// The caller has too many of something, such as tasks (HTTP 429 where there is a status).
    #[error("{0}")]
    TooMany(String),
}

impl Fault {
    /// [`Self::InvalidParams`] without data.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::InvalidParams { message: message.into(), data: None }
    }

    /// Whether the server or something behind it failed, rather than the caller.
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Internal(_)
                | Self::Unavailable(_)
                | Self::SessionsUnavailable(_)
                | Self::Relayed { code: -32603, .. }
        )
    }

    /// [`Self::UnsupportedVersion`], for a server that supports versions up to `max`.
    pub fn unsupported_version(requested: &str, max: ProtocolVersion) -> Self {
        let supported = ProtocolVersion::names_up_to(max).into_iter().map(Into::into).collect();
        Self::UnsupportedVersion { requested: shortened(requested).into_owned(), supported }
    }

    /// Whether the fault is temporary, so that the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_)
                | Self::SessionsUnavailable(_)
                | Self::Limited { .. }
                | Self::Busy { .. }
                | Self::TooMany(_)
        )
    }

    /// [`Self::ResourceNotFound`] with the usual message.
    pub fn resource_not_found(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let message = format!("Resource not found: {}", shortened(&uri));
        Self::ResourceNotFound { uri, message }
    }
}
