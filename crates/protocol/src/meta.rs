//! The `_meta` member of a request's parameters (2026-07-28, basic: `_meta`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ClientFacts, Fault, LogLevel, Member, Params, ProgressToken, members,
    params::{describe, duplicate},
};

/// The `_meta` key of the server's name and version in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `_meta` key of the `subscriptions/listen` request of a notification.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The prefix of the protocol's own members of `_meta`.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

/// The known members of `_meta`. [`passed_on_meta`] reads others.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Requests progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// The protocol version, which only modern requests declare here.
    pub protocol_version: Option<String>,
    /// Name and capabilities of the client, unverified.
    pub client: Arc<ClientFacts>,
    /// Whether the client declares capabilities, as the modern era requires.
    pub declares_capabilities: bool,
    /// The least severe log messages that the client wants for this request.
    pub log_level: Option<LogLevel>,
    /// The client's trace, which the server continues (W3C Trace Context).
    pub trace: Option<Trace>,
}

const MEMBERS: [&str; 7] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "traceparent",
    "tracestate",
];

/// A trace that a client started (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`: trace id, parent span and flags.
    pub parent: String,
    /// `tracestate`: data of vendors.
    pub state: Option<String>,
}

impl Meta {
    /// Reads `_meta` from the parameters; empty if it is absent.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if a member has the wrong type or occurs twice.
    pub fn read(params: &Params) -> Result<Self, Fault> {
        let Some(meta) = params.member(Member::Meta) else { return Ok(Self::default()) };
        if meta.first() != Some(&b'{') {
            return Err(Fault::invalid_params("_meta: it must be an object"));
        }

        let found = members::find(meta, &MEMBERS).map_err(duplicate)?;
        let [progress, version, info, capabilities, level, parent, state] = found.map(|range| {
            range.map(|(begin, end)| &meta[begin..end]).filter(|value| *value != b"null")
        });

        Ok(Self {
            progress_token: progress.map(parse).transpose()?,
            protocol_version: version.map(parse).transpose()?,
            client: ClientFacts::read(info, capabilities).map_err(|error| invalid(&error))?,
            declares_capabilities: capabilities.is_some(),
            log_level: level.map(parse).transpose()?,
            // A malformed trace is ignored, because it is no reason to reject a
            // request.
            trace: parent
                .and_then(|parent| parse(parent).ok())
                .map(|parent| Trace { parent, state: state.and_then(|state| parse(state).ok()) }),
        })
    }
}

/// The members of a request's `_meta` that are for servers behind this one, too: all that are
/// neither the protocol's own nor the token for progress. `None` if there are none.
pub fn passed_on_meta(params: &Params) -> Option<Map<String, Value>> {
    let json = params.member(Member::Meta)?;
    let mut members: Map<String, Value> = serde_json::from_slice(json).ok()?;
    members.retain(|name, _| name != "progressToken" && !name.starts_with(PROTOCOL_PREFIX));
    Some(members).filter(|members| !members.is_empty())
}

fn parse<'a, T: Deserialize<'a>>(value: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(value).map_err(|error| invalid(&error))
}

fn invalid(error: &serde_json::Error) -> Fault {
    Fault::invalid_params(format!("{}: {}", Member::Meta.name(), describe(error)))
}
