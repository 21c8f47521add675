//! Decides what to do with a message from a client. Every transport uses it.

use bytes::Bytes;
use larder_protocol::{
    Fault, Message, Meta, Method, Params, ProtocolVersion, Request, RequestId, parse,
};
use serde_json::Value;

use super::Era;

/// The transport's facts about a message, apart from its body.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageContext<'a> {
    /// The `MCP-Protocol-Version` header. A transport without headers has none.
    pub version: Option<&'a str>,
    /// Whether the message names a session.
    pub in_session: bool,
}

/// A message from a client, by the rules that apply to it.
#[derive(Debug)]
pub enum Inbound {
    /// A request in the modern era. [`Modern::accept`](super::Modern::accept) checks it.
    Modern(Request, Meta),
    /// A request that begins a legacy session.
    Initialize(Request),
    /// A legacy request outside of a session.
    Single(Request, Meta),
    /// A legacy request in a session.
    InSession(Request, Meta),
    /// A legacy notification.
    Notification {
        /// The notification's method.
        method: String,
        /// The parameters of the method.
        params: Params,
    },
    /// The client's response to a request of the server (legacy era).
    Response {
        /// The id of the server's request.
        id: RequestId,
        /// The result, or the message of the error.
        outcome: Result<Value, String>,
    },
    /// A message without effect.
    Ignored,
    /// A message that breaks a rule.
    Rejected {
        /// The id of the request, if it can be read.
        id: Option<RequestId>,
        /// The rule that it breaks.
        fault: Fault,
        /// The era whose errors answer it.
        era: Era,
    },
}

impl Inbound {
    /// Parses a message and decides its era.
    pub(super) fn read(body: &Bytes, context: MessageContext<'_>) -> Self {
        let era = Era::from_versions(None, context.version);
        match parse(body) {
            Err((fault, id)) => Self::Rejected { id, fault, era },
            Ok(Message::Request(request)) => Self::request(request, era, context),
            // 2026-07-28 defines no notification that a client sends over HTTP.
            Ok(Message::Notification { .. }) if era == Era::Modern => Self::Ignored,
            Ok(Message::Notification { method, params }) => Self::Notification { method, params },
            Ok(Message::Response { id, .. }) if era == Era::Modern => {
                let fault = Fault::InvalidRequest("Responses are not sent in this version.".into());
                Self::Rejected { id: Some(id), fault, era }
            }
            Ok(Message::Response { id, outcome }) => {
                Self::Response { id, outcome: outcome.map_err(|error| error.message) }
            }
        }
    }

    fn request(request: Request, header_era: Era, context: MessageContext<'_>) -> Self {
        let MessageContext { version, in_session } = context;
        let rejected = |id, fault, era| Self::Rejected { id: Some(id), fault, era };
        let meta = match Meta::read(&request.params) {
            Ok(meta) => meta,
            Err(fault) => {
                let message = format!("The request's _meta cannot be read: {fault}");
                return rejected(request.id, Fault::MissingMeta(message), header_era);
            }
        };

        match Era::from_versions(meta.protocol_version.as_deref(), version) {
            Era::Modern => Self::Modern(request, meta),
            Era::Legacy if request.method == Method::Initialize.as_str() && !in_session => {
                Self::Initialize(request)
            }
            Era::Legacy => match version {
                // Specification 2025-11-25, transports, section Protocol Version Header.
                Some(version) if ProtocolVersion::parse(version).is_none() => {
                    let fault = Fault::unsupported_version(version, ProtocolVersion::LATEST);
                    rejected(request.id, fault, Era::Legacy)
                }
                _ if in_session => Self::InSession(request, meta),
                _ => Self::Single(request, meta),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &'static str, version: Option<&str>, in_session: bool) -> Inbound {
        Inbound::read(&Bytes::from_static(body.as_bytes()), MessageContext { version, in_session })
    }

    #[test]
    fn a_message_is_treated_by_the_rules_of_its_era() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let modern = Some("2026-07-28");

        assert!(matches!(read(ping, None, false), Inbound::Single(..)));
        assert!(matches!(read(ping, None, true), Inbound::InSession(..)));
        assert!(matches!(read(ping, modern, true), Inbound::Modern(..)));
        assert!(matches!(read(initialize, None, false), Inbound::Initialize(_)));
        assert!(matches!(read(initialize, None, true), Inbound::InSession(..)));
        assert!(matches!(read(notification, None, true), Inbound::Notification { .. }));
        assert!(matches!(read(notification, modern, true), Inbound::Ignored));
        assert!(matches!(read(response, None, true), Inbound::Response { .. }));
        assert!(matches!(read(response, modern, true), Inbound::Rejected { .. }));
    }

    #[test]
    fn a_legacy_request_with_an_unknown_version_header_is_rejected() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}"#;
        let rejected = read(body, Some("1999-01-01"), false);
        let Inbound::Rejected { fault, era, .. } = rejected else { panic!("{rejected:?}") };

        assert!(matches!(fault, Fault::UnsupportedVersion { .. }));
        assert_eq!(era, Era::Legacy);

        assert!(matches!(read(body, Some("2025-06-18"), false), Inbound::Single(..)));
    }
}
