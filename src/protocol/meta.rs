//! The `_meta` member of a request's parameters (2026-07-28, basic: `_meta`).

use std::sync::Arc;

use serde::Deserialize;

use super::{
    ClientFacts, Fault, LogLevel, Member, Params, ProgressToken, members,
    params::{describe, twice},
};

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

const MEMBERS: [&str; 7] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "traceparent",
    "tracestate",
];

/// A trace that a caller has begun (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which one, and where in it.
    pub parent: String,
    /// What vendors add to it.
    pub state: Option<String>,
}

impl Meta {
    /// Reads `_meta` out of the parameters, empty when there is none.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when a member has the wrong type.
    pub fn of(params: &Params) -> Result<Self, Fault> {
        let Some(meta) = params.member(Member::Meta) else { return Ok(Self::default()) };
        if meta.first() != Some(&b'{') {
            return Err(Fault::invalid_params("_meta: it must be an object"));
        }
        let found = members::find(meta, &MEMBERS).map_err(twice)?;
        let found = found.map(|place| place.map(|(begin, end)| &meta[begin..end]));
        let [progress, version, info, capabilities, level, parent, state] =
            found.map(|value| value.filter(|value| *value != b"null"));
        Ok(Self {
            progress_token: progress.map(read).transpose()?,
            protocol_version: version.map(read).transpose()?,
            client: ClientFacts::read(info, capabilities).map_err(|error| wrong(&error))?,
            declares_capabilities: capabilities.is_some(),
            log_level: level.map(read).transpose()?,
            // What is no text counts as nothing: a trace is never a reason to
            // refuse a request.
            trace: parent
                .and_then(|parent| read(parent).ok())
                .map(|parent| Trace { parent, state: state.and_then(|state| read(state).ok()) }),
        })
    }
}

fn read<'a, T: Deserialize<'a>>(value: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(value).map_err(|error| wrong(&error))
}

fn wrong(error: &serde_json::Error) -> Fault {
    Fault::invalid_params(format!("{}: {}", Member::Meta.name(), describe(error)))
}
