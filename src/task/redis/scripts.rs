//! The steps that must be taken as one, and the keys that they work on.

use crate::{
    auth::Owner,
    redis::{Call, Keys, Script, escape},
};

#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) answer: Script,
    pub(super) ask: Script,
    pub(super) create: Script,
    pub(super) doubt: Script,
    pub(super) end: Script,
    pub(super) note: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |code| Script::timed(&[include_str!("common.lua"), code]);
        Self {
            answer: script(include_str!("answer.lua")),
            ask: script(include_str!("ask.lua")),
            create: script(include_str!("create.lua")),
            doubt: script(include_str!("doubt.lua")),
            end: script(include_str!("end.lua")),
            note: script(include_str!("note.lua")),
        }
    }
}

/// Where a task lies: in the shard of its owner, and under the owner's name,
/// so that nobody else's look-up ever finds it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) task: String,
    all: String,
}

impl Place {
    pub(super) fn new(keys: &Keys, owner: &Owner, id: &str) -> Self {
        let shard = keys.shard_of(owner.as_str());
        // An id that a client made up must not reach into other keys.
        let task = shard.key_with("task", owner.as_str(), &escape(id));
        Self { task, all: shard.key("tasks", owner.as_str()) }
    }

    /// A step that concerns the task.
    pub(super) fn on<'a>(&self, script: &'a Script) -> Call<'a> {
        script.on(&[&self.task])
    }

    /// A step that concerns all of the owner's tasks, too.
    pub(super) fn among_all<'a>(&self, script: &'a Script) -> Call<'a> {
        script.on(&[&self.task, &self.all])
    }
}
