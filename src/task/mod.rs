//! Tasks: calls that go on after their request was answered (the extension
//! `io.modelcontextprotocol/tasks`, SEP-2663). Kept like sessions, found only
//! by the principal that began them, on whichever server it asks.

mod limits;
mod memory;
#[cfg(feature = "redis")]
mod redis;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::{limits::TaskLimits, memory::MemoryTasks, redis::RedisTasks};
use crate::{auth::Owner, clock::Timestamp, protocol::Fault};

/// The extension's name in capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What there is to know of a task at one time.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// 128 random bits in hexadecimal.
    pub id: Arc<str>,
    /// How far it is.
    pub state: TaskState,
    /// For people.
    pub message: Option<String>,
    /// When it began.
    pub created: Timestamp,
    /// When something last happened to it.
    pub updated: Timestamp,
    /// How long it is kept, from its beginning.
    pub ttl: Duration,
    /// How often it is worth asking.
    pub poll: Duration,
}

/// How far a task is.
#[derive(Debug, Clone)]
pub enum TaskState {
    /// Running.
    Working,
    /// Waiting for the client; its questions, by key.
    InputRequired(BTreeMap<String, Value>),
    /// Over, for good.
    Ended(TaskEnd),
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// With a result, which may tell of a failure.
    Completed(Value),
    /// In a protocol error.
    Failed(Fault),
    /// Because the client asked for it.
    Cancelled,
}

/// Where tasks are kept, as clients come to it. All that is asked for an owner
/// fails with [`Fault::Unavailable`] where that place cannot be reached.
#[async_trait]
pub trait Tasks: fmt::Debug + Send + Sync + 'static {
    /// Begins a task that this process runs. From here on it can be found.
    ///
    /// # Errors
    /// [`Fault::TooMany`].
    async fn create(&self, owner: &Owner) -> Result<(TaskView, Arc<dyn TaskRun>), Fault>;

    /// The owner's task of that id.
    async fn get(&self, owner: &Owner, id: &str) -> Result<Option<TaskView>, Fault>;

    /// Accepts answers; those that nobody waits for are ignored. Says whether
    /// there is such a task.
    async fn answer(
        &self,
        owner: &Owner,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<bool, Fault>;

    /// Cancels a task, unless it has ended. Says whether there is such a task.
    async fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, Fault>;

    /// Removes what has expired, until dropped.
    async fn maintain(&self);
}

/// A task, as whoever runs it sees it.
#[async_trait]
pub trait TaskRun: fmt::Debug + Send + Sync + 'static {
    /// Cancelled when nobody can want the outcome any more: the owner has
    /// cancelled the task, or it has expired.
    fn cancelled(&self) -> &CancellationToken;

    /// Asks the client something; the answer, when it comes. A key is used
    /// once in a task's life. The answer never comes to a task that ends.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    async fn ask(&self, key: &str, question: &Value) -> Result<oneshot::Receiver<Value>, Fault>;

    /// Says how it goes, for people.
    async fn note(&self, message: &str);

    /// Ends the task, unless it has ended. Where the place cannot be reached,
    /// it is tried again until the task expires.
    async fn finish(&self, end: TaskEnd);
}

fn too_many(most: usize) -> Fault {
    Fault::TooMany(format!(
        "You have {most} tasks, the most there may be (tasks.per_principal). Wait until some expire."
    ))
}
