//! The Lua scripts of tasks.

use crate::redis::Script;

/// The scripts, one for each file.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) answer: Script,
    pub(super) ask: Script,
    pub(super) count: Script,
    pub(super) create: Script,
    pub(super) end: Script,
    pub(super) mark_suspect: Script,
    pub(super) set_message: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |code| Script::with_time_functions(&[include_str!("common.lua"), code]);
        Self {
            answer: script(include_str!("answer.lua")),
            ask: script(include_str!("ask.lua")),
            count: Script::with_time_functions(&[include_str!("count.lua")]),
            create: script(include_str!("create.lua")),
            end: script(include_str!("end.lua")),
            mark_suspect: script(include_str!("mark_suspect.lua")),
            set_message: script(include_str!("set_message.lua")),
        }
    }
}
