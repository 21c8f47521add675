//! Tasks: calls that continue after the response to their request (the extension
//! `io.modelcontextprotocol/tasks`, SEP-2663). The backends are the same as for sessions. Only the
//! principal that created a task finds it, on any instance.

mod json;
mod limits;
mod memory;
mod redis;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_identity::Owner;
use larder_protocol::Fault;
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::redis::RedisTasks;
pub use self::{limits::TaskLimits, memory::MemoryTasks};

/// The extension's name in capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A snapshot of a task.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// The task's id: 128 random bits in hexadecimal.
    pub id: Arc<str>,
    /// The task's state.
    pub state: TaskState,
    /// The status message, for people.
    pub message: Option<String>,
    /// The time of the creation.
    pub created: Timestamp,
    /// The time of the last change.
    pub updated: Timestamp,
    /// How long the task is kept after its creation.
    pub ttl: Duration,
    /// The polling interval suggested to the client.
    pub poll_interval: Duration,
}

/// The state of a task.
#[derive(Debug, Clone)]
pub enum TaskState {
    /// The task is running.
    Working,
    /// The task waits for the client's answers to these questions, by key.
    InputRequired(BTreeMap<String, Value>),
    /// The task has ended.
    Ended(TaskEnd),
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// The task has a result, which may be a tool error.
    Completed(Value),
    /// The task has a protocol error.
    Failed(Fault),
    /// The client has cancelled the task.
    Cancelled,
}

/// Storage of tasks, for their clients. All methods fail with [`Fault::Unavailable`] if the storage
/// cannot be reached.
#[async_trait]
pub trait Tasks: fmt::Debug + Send + Sync + 'static {
    /// Creates a task that this process runs.
    ///
    /// # Errors
    /// [`Fault::TooMany`] if the owner has too many tasks, [`Fault::Busy`] if all owners together
    /// have too many.
    async fn create(&self, owner: &Owner) -> Result<(TaskView, Arc<dyn TaskRun>), Fault>;

    /// Looks up a task of the owner.
    async fn get(&self, owner: &Owner, id: &str) -> Result<Option<TaskView>, Fault>;

    /// Stores answers by the keys of their questions, and ignores answers without an open question.
    /// Returns whether the task exists.
    async fn answer(
        &self,
        owner: &Owner,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<bool, Fault>;

    /// Cancels a task unless it has ended. Returns whether the task exists.
    async fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, Fault>;

    /// Removes expired tasks, until dropped.
    async fn maintain(&self);
}

/// A task, for the process that runs it.
#[async_trait]
pub trait TaskRun: fmt::Debug + Send + Sync + 'static {
    /// Cancelled when the owner cancels the task or the task expires.
    fn cancelled(&self) -> &CancellationToken;

    /// Asks the client a question. The receiver yields the answer, or fails if the task ends first.
    /// A task may use each key once.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] if the storage cannot be reached.
    async fn ask(&self, key: &str, question: &Value) -> Result<oneshot::Receiver<Value>, Fault>;

    /// Sets the status message.
    async fn set_message(&self, message: &str);

    /// Ends the task unless it has ended. If the storage cannot be reached, retries until the task
    /// expires.
    async fn finish(&self, end: TaskEnd);
}

fn too_many_in_total(max: usize) -> Fault {
    Fault::Busy {
        message: format!(
            "This server has {max} tasks, the maximum (tasks.total). Try again when some have expired."
        ),
        retry_after: Duration::from_secs(1),
    }
}

fn too_many(max: usize) -> Fault {
    Fault::TooMany(format!(
        "You have {max} tasks, the maximum (tasks.per_principal). Wait until some expire."
    ))
}
