//! The keys of a task, and script calls on them.

use larder_identity::Owner;

use crate::redis::{Call, Keys, Script, Shard, escape};

/// Builds the keys of a task. They are in the owner's shard and contain the owner's name, so that a
/// lookup for another owner never finds them.
#[derive(Debug, Clone)]
pub(super) struct TaskKeys {
    pub(super) task: String,
    tasks: String,
    living: String,
}

impl TaskKeys {
    pub(super) fn new(keys: &Keys, owner: &Owner, id: &str) -> Self {
        let shard = keys.shard_of(owner.as_str());
        // Clients supply the id. Escaped, it cannot name another key.
        let task = shard.key_with("task", owner.as_str(), &escape(id));

        Self { task, tasks: shard.key("tasks", owner.as_str()), living: living(&shard) }
    }

    /// A call on the task.
    pub(super) fn task<'a>(&self, script: &'a Script) -> Call<'a> {
        script.on(&[&self.task])
    }

    /// A call on the task, the index of the owner's tasks and the index of the shard.
    pub(super) fn task_and_indexes<'a>(&self, script: &'a Script) -> Call<'a> {
        script.on(&[&self.task, &self.tasks, &self.living])
    }
}

/// The key of the index of all tasks in a shard.
pub(super) fn living(shard: &Shard) -> String {
    shard.single("living-tasks")
}
