//! Tasks in the form of the protocol (extension `io.modelcontextprotocol/tasks`).

use larder_protocol::Fault;
use serde_json::{Value, json};

use super::{TaskEnd, TaskState, TaskView};

impl TaskView {
    /// The task as JSON. `error` encodes the fault of a failed task.
    pub fn to_json(&self, error: impl FnOnce(&Fault) -> Value) -> Value {
        let status = match &self.state {
            TaskState::Working => "working",
            TaskState::InputRequired(_) => "input_required",
            TaskState::Ended(TaskEnd::Completed(_)) => "completed",
            TaskState::Ended(TaskEnd::Failed(_)) => "failed",
            TaskState::Ended(TaskEnd::Cancelled) => "cancelled",
        };

        let mut task = json!({
            "taskId": &*self.id,
            "status": status,
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": self.updated.to_string(),
            "ttlMs": self.ttl.as_millis(),
            "pollIntervalMs": self.poll_interval.as_millis(),
        });

        if let Some(message) = &self.message {
            task["statusMessage"] = json!(message);
        }

        match &self.state {
            TaskState::InputRequired(questions) => task["inputRequests"] = json!(questions),
            TaskState::Ended(TaskEnd::Completed(result)) => task["result"] = result.clone(),
            TaskState::Ended(TaskEnd::Failed(fault)) => task["error"] = error(fault),
            TaskState::Working | TaskState::Ended(TaskEnd::Cancelled) => {}
        }

        task
    }
}
