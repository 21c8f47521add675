//! The encoding of sessions and watches in Redis.

use serde::{Deserialize, Serialize};

use larder_identity::{Owner, Principal};
use larder_protocol::{ClientFacts, LogLevel, ProtocolVersion};
use rmcp::model::{ClientCapabilities, Implementation};

use crate::{
    redis::{escape, unescape},
    session::{Session, Watch},
};

/// A client as JSON.
#[derive(Serialize, Deserialize)]
struct EncodedClient {
    #[serde(default)]
    info: Option<Implementation>,
    #[serde(default)]
    capabilities: ClientCapabilities,
}

pub(super) fn encode_client(facts: &ClientFacts) -> String {
    let ClientFacts { info, capabilities } = facts.clone();
    // The facts were decoded from JSON, so they can be encoded.
    serde_json::to_string(&EncodedClient { info, capabilities }).unwrap_or_default()
}

pub(super) fn encode_level(level: LogLevel) -> String {
    // A level is a JSON string, which can always be encoded.
    serde_json::to_string(&level).unwrap_or_default()
}

/// Decodes the version, the client and the log level of a session.
pub(super) fn decode_session(
    id: &str,
    principal: &Principal,
    fields: &[String],
) -> Option<Session> {
    let [version, client, level] = fields else { return None };
    let EncodedClient { info, capabilities } = serde_json::from_str(client).ok()?;

    Some(Session {
        id: id.into(),
        principal: principal.clone(),
        version: ProtocolVersion::parse(version)?,
        client: ClientFacts { info, capabilities }.into(),
        log_level: serde_json::from_str(level).ok()?,
    })
}

pub(super) fn encode_watch(watch: &Watch) -> String {
    format!("{} {}", escape(watch.reader.as_str()), watch.link)
}

pub(super) fn decode_watch(encoded: &str) -> Option<Watch> {
    let (reader, link) = encoded.split_once(' ')?;
    Some(Watch { reader: Owner::new(unescape(reader)?), link: link.to_owned() })
}
