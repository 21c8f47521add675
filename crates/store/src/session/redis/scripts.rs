//! The Lua scripts of sessions.

use crate::{
    redis::{Call, Script, millis},
    session::SessionLimits,
};

/// The scripts, one for each file.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) announce: Script,
    pub(super) append: Script,
    pub(super) close: Script,
    pub(super) count: Script,
    pub(super) create: Script,
    pub(super) delete: Script,
    pub(super) delivered: Script,
    pub(super) disconnect: Script,
    pub(super) exists: Script,
    pub(super) follow: Script,
    pub(super) get: Script,
    pub(super) open: Script,
    pub(super) owner_sessions: Script,
    pub(super) renew_stream: Script,
    pub(super) send_now: Script,
    pub(super) set_level: Script,
    pub(super) subscribe: Script,
    pub(super) unfollow: Script,
    pub(super) watch: Script,
    pub(super) watches: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |code| Script::with_time_functions(&[include_str!("common.lua"), code]);

        Self {
            announce: script(include_str!("announce.lua")),
            append: script(include_str!("append.lua")),
            close: script(include_str!("close.lua")),
            count: script(include_str!("count.lua")),
            create: script(include_str!("create.lua")),
            delete: script(include_str!("delete.lua")),
            delivered: script(include_str!("delivered.lua")),
            disconnect: script(include_str!("disconnect.lua")),
            exists: script(include_str!("exists.lua")),
            follow: script(include_str!("follow.lua")),
            get: script(include_str!("get.lua")),
            open: script(include_str!("open.lua")),
            owner_sessions: script(include_str!("owner_sessions.lua")),
            renew_stream: script(include_str!("renew_stream.lua")),
            send_now: script(include_str!("send_now.lua")),
            set_level: script(include_str!("set_level.lua")),
            subscribe: script(include_str!("subscribe.lua")),
            unfollow: script(include_str!("unfollow.lua")),
            watch: script(include_str!("watch.lua")),
            watches: script(include_str!("watches.lua")),
        }
    }
}

/// Adds the limits of a stream to a call.
pub(super) fn with_limits<'a>(call: Call<'a>, limits: &SessionLimits) -> Call<'a> {
    let call = call.arg(limits.events_per_stream).arg(limits.bytes_per_stream);
    call.arg(millis(limits.message_age))
}
