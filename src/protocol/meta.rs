//! The `_meta` member of a request's parameters (2026-07-28, basic: `_meta`).

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{ClientFacts, Fault, LogLevel, Member, Params, ProgressToken, params::describe};

/// The key under which results name the server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The key that ties a notification to its `subscriptions/listen` request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What we read of `_meta`; other members are left alone.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Opts the request into progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// Declares the modern era.
    pub protocol_version: Option<String>,
    /// Who calls, and what it can do, by its own word.
    pub client: Arc<ClientFacts>,
    /// Whether it said what it can do, as it has to in the modern era.
    pub declares_capabilities: bool,
    /// Which log messages the caller wants of this request.
    pub log_level: Option<LogLevel>,
    /// The caller's trace, which goes on here (W3C Trace Context).
    pub trace: Option<Trace>,
}

#[derive(Default, Deserialize)]
struct Wire<'a> {
    #[serde(rename = "progressToken")]
    progress_token: Option<ProgressToken>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow)]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    client_capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<LogLevel>,
    #[serde(default, deserialize_with = "text")]
    traceparent: Option<String>,
    #[serde(default, deserialize_with = "text")]
    tracestate: Option<String>,
}

/// A trace that a caller has begun (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which one, and where in it.
    pub parent: String,
    /// What vendors add to it.
    pub state: Option<String>,
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
        let Some(wire) = params.read::<Wire<'_>>(Member::Meta)? else { return Ok(Self::default()) };
        let client = ClientFacts::read(wire.client_info, wire.client_capabilities);
        let client = client.map_err(|error| {
            Fault::invalid_params(format!("{}: {}", Member::Meta.name(), describe(&error)))
        })?;
        let state = wire.tracestate;
        Ok(Self {
            progress_token: wire.progress_token,
            protocol_version: wire.protocol_version,
            client,
            declares_capabilities: wire.client_capabilities.is_some(),
            log_level: wire.log_level,
            trace: wire.traceparent.map(|parent| Trace { parent, state }),
        })
    }
}
