//! A session as it is written down, and who watches what.

use serde::{Deserialize, Serialize};

use rmcp::model::{ClientCapabilities, Implementation};

use crate::{
    auth::{Owner, Principal},
    protocol::{ClientFacts, LogLevel, ProtocolVersion},
    redis::{escape, unescape},
    session::{Session, Watch},
};

#[derive(Serialize, Deserialize)]
struct Client {
    #[serde(default)]
    info: Option<Implementation>,
    #[serde(default)]
    capabilities: ClientCapabilities,
}

pub(super) fn client(facts: &ClientFacts) -> String {
    let ClientFacts { info, capabilities } = facts.clone();
    // It came as JSON and goes as JSON.
    serde_json::to_string(&Client { info, capabilities }).unwrap_or_default()
}

pub(super) fn level(level: LogLevel) -> String {
    // A word in quotation marks.
    serde_json::to_string(&level).unwrap_or_default()
}

/// Version, client and level, as [`client`] and [`level`] wrote them.
pub(super) fn session(id: &str, principal: &Principal, record: &[String]) -> Option<Session> {
    let [version, client, level] = record else { return None };
    let Client { info, capabilities } = serde_json::from_str(client).ok()?;
    Some(Session {
        id: id.into(),
        principal: principal.clone(),
        version: ProtocolVersion::parse(version)?,
        client: ClientFacts { info, capabilities }.into(),
        log_level: serde_json::from_str(level).ok()?,
    })
}

pub(super) fn watch(watch: &Watch) -> String {
    format!("{} {}", escape(watch.reader.as_str()), watch.link)
}

/// As [`watch`] wrote it.
pub(super) fn read_watch(written: &str) -> Option<Watch> {
    let (reader, link) = written.split_once(' ')?;
    Some(Watch { reader: Owner::new(unescape(reader)?), link: link.to_owned() })
}
