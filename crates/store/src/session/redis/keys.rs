//! The keys of a session, and script calls on them.

use std::sync::Arc;

use larder_identity::Owner;

use crate::redis::{Call, Keys, Script, Shard, escape};

/// Builds the keys of a session. They are in the owner's shard and contain the owner's name, so that
/// a lookup for another owner never finds them.
#[derive(Debug, Clone)]
pub(super) struct SessionKeys {
    shard: Shard,
    owner: Arc<str>,
    pub(super) id: Arc<str>,
}

impl SessionKeys {
    pub(super) fn new(keys: &Keys, owner: &Owner, id: Arc<str>) -> Self {
        let shard = keys.shard_of(owner.as_str());
        Self { shard, owner: escape(owner.as_str()).into(), id }
    }

    /// The keys of an owner, for calls that concern no single session.
    pub(super) fn of_owner(keys: &Keys, owner: &Owner) -> Self {
        Self::new(keys, owner, "".into())
    }

    /// The keys of an owner whose name is already escaped.
    pub(super) fn of_escaped_owner(shard: &Shard, owner: &str) -> Self {
        Self { shard: shard.clone(), owner: owner.into(), id: "".into() }
    }

    pub(super) fn log(&self, stream: &str) -> String {
        self.stream_key("log", stream)
    }

    pub(super) fn entries(&self, stream: &str) -> String {
        self.stream_key("stream", stream)
    }

    /// The sessions of the owner that subscribe to a resource.
    #[cfg(test)]
    pub(super) fn subscribers(&self, uri: &str) -> String {
        format!("{}subscribers:{}:{uri}", self.shard.start(), self.owner)
    }

    fn stream_key(&self, kind: &str, stream: &str) -> String {
        // Clients supply these ids. Escaped, they cannot name another session's keys.
        let id = escape(&self.id);
        let stream = escape(stream);
        format!("{}{kind}:{}:{id}:{stream}", self.shard.start(), self.owner)
    }

    /// A call on the session.
    pub(super) fn session<'a>(&self, script: &'a Script) -> Call<'a> {
        self.call(script, self.record())
    }

    /// The key of the session itself.
    pub(super) fn record(&self) -> String {
        format!("{}session:{}:{}", self.shard.start(), self.owner, escape(&self.id))
    }

    /// A call on one of the session's streams.
    pub(super) fn stream<'a>(&self, script: &'a Script, stream: &str) -> Call<'a> {
        self.call(script, self.log(stream)).arg(escape(stream))
    }

    /// A call on all sessions of the owner.
    pub(super) fn all<'a>(&self, script: &'a Script) -> Call<'a> {
        self.call(script, format!("{}sessions:{}", self.shard.start(), self.owner))
    }

    fn call<'a>(&self, script: &'a Script, key: String) -> Call<'a> {
        script.on(&[key]).arg(self.shard.start()).arg(&*self.owner).arg(escape(&self.id))
    }
}
