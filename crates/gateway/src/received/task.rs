//! The state of a task of an upstream (2025-11-25, tasks).

use std::time::Duration;

use larder_protocol::quote::bounded;
use serde::Serialize;
use serde_json::Value;

use super::{
    MESSAGE_CHARS,
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
};

/// The most bytes of a task's id.
const ID_BYTES: usize = 1 << 10;

/// The state of a task.
pub(crate) struct TaskState {
    pub(crate) id: TaskId,
    pub(crate) is_working: bool,
    pub(crate) message: Option<String>,
    /// How often the upstream wants to be asked for it.
    pub(crate) poll: Option<Duration>,
}

/// The id of a task, which the upstream has chosen, of at most [`ID_BYTES`].
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct TaskId(String);

impl TaskState {
    pub(super) fn of(task: Value) -> Result<Self, Problem> {
        Self::of_object(Object::of(task, "a task")?)
    }

    fn of_object(mut task: Object) -> Result<Self, Problem> {
        let Some(id) = task.take_short_text("taskId", ID_BYTES)? else {
            return Err(Problem::of("a task must have a taskId", &task.into_value()));
        };

        let is_working = task.text("status") == Some("working");
        let message =
            task.text("statusMessage").map(|text| bounded(text, MESSAGE_CHARS).into_owned());
        let poll = task.take("pollInterval").and_then(|interval| interval.as_u64());
        Ok(Self { id: TaskId(id), is_working, message, poll: poll.map(Duration::from_millis) })
    }
}

impl Answer for TaskState {
    fn read(result: RawResult) -> Result<Self, Problem> {
        Self::of_object(result.object()?)
    }
}
