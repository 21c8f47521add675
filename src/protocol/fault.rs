//! What can go wrong with a message, before any era gives it a number.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ProtocolVersion;

/// A protocol error: what the caller may see, in words that say what to do.
/// Codes and HTTP statuses differ by era and are given in `era`.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Not JSON, or not UTF-8 (-32700).
    #[error("{0}")]
    Parse(String),
    /// JSON, but no JSON-RPC message (-32600).
    #[error("{0}")]
    InvalidRequest(String),
    /// No such method, or not in this era (-32601).
    #[error("Method not found: {0}")]
    MethodNotFound(String),
    /// Parameters that the method cannot take (-32602).
    #[error("{message}")]
    InvalidParams {
        /// What is wrong and what to do.
        message: String,
        /// Machine-readable detail.
        data: Option<Value>,
    },
    /// `_meta` lacks a member that every modern request must carry (-32602).
    #[error("{0}")]
    MissingMeta(String),
    /// Nothing at that URI for this caller (-32602 modern, -32002 legacy).
    #[error("{message}")]
    ResourceNotFound {
        /// The URI asked for.
        uri: String,
        /// Says whether it expired, and what to do.
        message: String,
    },
    /// Our failure; details are in the log only (-32603).
    #[error("{0}")]
    Internal(String),
    /// Something behind us cannot be reached now; trying again makes sense (-32603).
    #[error("{0}")]
    Unavailable(String),
    /// A header is missing or contradicts the body (-32020).
    #[error("Header mismatch: {0}")]
    HeaderMismatch(String),
    /// The call needs something that the client does not declare (-32021).
    #[error("The client does not declare a capability that this call needs: {required}")]
    MissingCapability {
        /// What it would have to declare.
        required: Value,
    },
    /// A protocol version that this server does not speak (-32022).
    #[error("Unsupported protocol version: {requested}")]
    UnsupportedVersion {
        /// What the client asked for.
        requested: String,
        /// What it may ask for, newest first.
        supported: Vec<String>,
    },
    /// The session is gone or was never there (HTTP 404).
    #[error(
        "Session not found: it ended or expired. Send initialize again without Mcp-Session-Id."
    )]
    SessionNotFound,
    /// The stream of a `Last-Event-ID` is gone, trimmed or not this session's (HTTP 404).
    #[error("{0}")]
    StreamNotFound(String),
    /// Where sessions are kept cannot be reached now; trying again makes sense
    /// (-32603, HTTP 503).
    #[error("{0}")]
    SessionsUnavailable(String),
    /// The caller's token does not allow this (HTTP 403; -32600).
    #[error("This needs a token with the scope: {}", required.join(" "))]
    InsufficientScope {
        /// All scopes that it takes, not only those that are missing.
        required: Vec<String>,
    },
    /// A bound on what one caller may use was reached (HTTP 429).
    #[error("{message}")]
    Limited {
        /// Names the setting.
        message: String,
        /// When trying again makes sense.
        retry_after: std::time::Duration,
    },
    /// A bound of this server was reached (HTTP 429 where there is a status).
    #[error("{0}")]
    TooMany(String),
}

impl Fault {
    /// Invalid parameters, without data.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::InvalidParams { message: message.into(), data: None }
    }

    /// A protocol version that is none, or later than `max`.
    pub fn unsupported_version(requested: &str, max: ProtocolVersion) -> Self {
        let supported = ProtocolVersion::names_up_to(max).into_iter().map(Into::into).collect();
        Self::UnsupportedVersion { requested: requested.chars().take(80).collect(), supported }
    }

    /// The resource is not there for this caller.
    pub fn resource_not_found(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let message = format!("Resource not found: {uri}");
        Self::ResourceNotFound { uri, message }
    }
}
