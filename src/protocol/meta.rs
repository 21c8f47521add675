//! The `_meta` member of a request's parameters (2026-07-28, basic: `_meta`).

use rmcp::model::{ClientCapabilities, Implementation};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Fault, LogLevel, Member, Params, ProgressToken};

/// The key under which results name the server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The key that ties a notification to its `subscriptions/listen` request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What we read of `_meta`; other members are left alone.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Meta {
    /// Opts the request into progress notifications.
    #[serde(rename = "progressToken")]
    pub progress_token: Option<ProgressToken>,
    /// Declares the modern era.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<String>,
    /// Who calls, by its own word.
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<Implementation>,
    /// What the caller can do; required in the modern era.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<ClientCapabilities>,
    /// Which log messages the caller wants of this request.
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<LogLevel>,
    /// The caller's trace, which goes on here (W3C Trace Context).
    #[serde(default, deserialize_with = "text")]
    pub traceparent: Option<String>,
    /// What vendors add to it.
    #[serde(default, deserialize_with = "text")]
    pub tracestate: Option<String>,
}

/// A trace that a caller has begun (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which one, and where in it.
    pub parent: String,
    /// What vendors add to it.
    pub state: Option<String>,
}

impl Trace {
    pub(crate) fn of(parent: Option<String>, state: Option<String>) -> Option<Self> {
        parent.map(|parent| Self { parent, state })
    }
}

/// Text; anything else counts as nothing, because a trace is never a reason to
/// refuse a request.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

impl Meta {
    /// Reads `_meta` out of the parameters, empty when there is none.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when a member has the wrong type.
    pub fn of(params: &Params) -> Result<Self, Fault> {
        Ok(params.read(Member::Meta)?.unwrap_or_default())
    }
}

/// Who the client says it is and what it can do: from `initialize` in the
/// legacy era, from each request in the modern one. Never verified.
#[derive(Debug, Clone, Default)]
pub struct ClientFacts {
    /// Name and version.
    pub info: Option<Implementation>,
    /// Declared capabilities.
    pub capabilities: ClientCapabilities,
}

impl ClientFacts {
    /// Whether the client declares that extension of the protocol.
    pub fn has_extension(&self, name: &str) -> bool {
        let declared = serde_json::to_value(&self.capabilities).unwrap_or_default();
        declared.get("extensions").and_then(|extensions| extensions.get(name)).is_some()
    }
}
