//! The steps that must be taken as one, and the keys that they work on.

use std::sync::Arc;

use crate::{
    auth::Owner,
    redis::{Call, Keys, Script, Shard, escape, millis},
    session::SessionLimits,
};

#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) announce: Script,
    pub(super) append: Script,
    pub(super) close: Script,
    pub(super) count: Script,
    pub(super) create: Script,
    pub(super) delete: Script,
    pub(super) disconnect: Script,
    pub(super) follow: Script,
    pub(super) lease: Script,
    pub(super) leave: Script,
    pub(super) level: Script,
    pub(super) look: Script,
    pub(super) open: Script,
    pub(super) seen: Script,
    pub(super) subscribe: Script,
    pub(super) watch: Script,
    pub(super) watches: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |code| Script::timed(&[include_str!("common.lua"), code]);
        Self {
            announce: script(include_str!("announce.lua")),
            append: script(include_str!("append.lua")),
            close: script(include_str!("close.lua")),
            count: script(include_str!("count.lua")),
            create: script(include_str!("create.lua")),
            delete: script(include_str!("delete.lua")),
            disconnect: script(include_str!("disconnect.lua")),
            follow: script(include_str!("follow.lua")),
            lease: script(include_str!("lease.lua")),
            leave: script(include_str!("leave.lua")),
            level: script(include_str!("level.lua")),
            look: script(include_str!("look.lua")),
            open: script(include_str!("open.lua")),
            seen: script(include_str!("seen.lua")),
            subscribe: script(include_str!("subscribe.lua")),
            watch: script(include_str!("watch.lua")),
            watches: script(include_str!("watches.lua")),
        }
    }
}

/// Where a session lies: in the shard of its owner, and under the owner's
/// name, so that nobody else's look-up ever finds it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    shard: Shard,
    owner: Arc<str>,
    pub(super) id: Arc<str>,
}

impl Place {
    pub(super) fn new(keys: &Keys, owner: &Owner, id: Arc<str>) -> Self {
        let shard = keys.shard_of(owner.as_str());
        Self { shard, owner: escape(owner.as_str()).into(), id }
    }

    /// The same of an owner whose name is escaped already.
    pub(super) fn of_owner(shard: &Shard, owner: &str) -> Self {
        Self { shard: shard.clone(), owner: owner.into(), id: "".into() }
    }

    pub(super) fn log(&self, stream: &str) -> String {
        self.key("log", stream)
    }

    pub(super) fn entries(&self, stream: &str) -> String {
        self.key("stream", stream)
    }

    fn key(&self, kind: &str, stream: &str) -> String {
        // An id that a client made up must not reach into another session's keys.
        let (id, stream) = (escape(&self.id), escape(stream));
        format!("{}{kind}:{}:{id}:{stream}", self.shard.start(), self.owner)
    }

    /// A step that concerns the session.
    pub(super) fn session<'a>(&self, script: &'a Script) -> Call<'a> {
        let key = format!("{}session:{}:{}", self.shard.start(), self.owner, escape(&self.id));
        self.call(script, key)
    }

    /// A step that concerns one of its streams.
    pub(super) fn stream<'a>(&self, script: &'a Script, stream: &str) -> Call<'a> {
        self.call(script, self.log(stream)).arg(escape(stream))
    }

    /// A step that concerns all of the owner's sessions.
    pub(super) fn all<'a>(&self, script: &'a Script) -> Call<'a> {
        self.call(script, format!("{}sessions:{}", self.shard.start(), self.owner))
    }

    fn call<'a>(&self, script: &'a Script, key: String) -> Call<'a> {
        script.on(&[key]).arg(self.shard.start()).arg(&*self.owner).arg(escape(&self.id))
    }
}

/// What is kept of a stream.
pub(super) fn limited<'a>(call: Call<'a>, limits: &SessionLimits) -> Call<'a> {
    let call = call.arg(limits.events_per_stream).arg(limits.bytes_per_stream);
    call.arg(millis(limits.message_age))
}
