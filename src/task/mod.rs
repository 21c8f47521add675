//! Tasks: calls that go on after their request was answered (the extension
//! `io.modelcontextprotocol/tasks`, SEP-2663). Kept like sessions, found only
//! by the principal that began them.

mod memory;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use memory::{MemoryTasks, TaskLimits};

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
    /// Ended with a result, which may tell of a failure.
    Completed(Value),
    /// Ended in a protocol error.
    Failed(Fault),
    /// Ended because the client asked for it.
    Cancelled,
}

/// Where tasks are kept.
#[async_trait]
pub trait Tasks: fmt::Debug + Send + Sync + 'static {
    /// Begins a task, and says when its owner cancels it. From here on it can
    /// be found.
    ///
    /// # Errors
    /// [`Fault::TooMany`].
    async fn create(&self, owner: &Owner) -> Result<(TaskView, CancellationToken), Fault>;

    /// The owner's task of that id.
    async fn get(&self, owner: &Owner, id: &str) -> Option<TaskView>;

    /// Asks the client something; the answer, when it comes. Dropping the
    /// receiver gives the question up.
    async fn ask(&self, id: &str, key: &str, question: Value) -> oneshot::Receiver<Value>;

    /// Takes answers; those that nobody waits for are ignored. Says whether
    /// there is such a task.
    async fn answer(&self, owner: &Owner, id: &str, answers: BTreeMap<String, Value>) -> bool;

    /// Says how it goes, for people.
    async fn note(&self, id: &str, message: &str);

    /// Ends a task, unless it has ended.
    async fn finish(&self, id: &str, state: TaskState);

    /// Cancels a task, unless it has ended. Says whether there is such a task.
    async fn cancel(&self, owner: &Owner, id: &str) -> bool;

    /// Removes what has expired, until dropped.
    async fn maintain(&self);
}
