//! Ending a call early, and turning it into a task.

use larder_protocol::Fault;
use larder_store::task::EXTENSION;
use serde_json::{Value, json};

use super::Context;
use crate::handler::AskMode;

impl<S> Context<S> {
    /// Ends the call with a protocol error, and never returns. For an error that a model can act on,
    /// return a [`ToolError`](crate::ToolError) instead.
    pub async fn fail<T>(&self, fault: Fault) -> T {
        self.scope().control.fail(fault).await
    }

    /// Whether the client supports tasks.
    pub fn can_follow_tasks(&self) -> bool {
        self.client().has_extension(EXTENSION)
    }

    /// Turns the call into a task if the client supports tasks, and returns
    /// whether the call is one. The request is then answered at once, and the
    /// handler continues in the background. Ask the client for input that the
    /// task needs from its start before this call (SEP-2663: Task Creation).
    pub async fn into_task(&self) -> bool {
        let scope = self.scope();
        if scope.control.task().is_some() {
            return true;
        }
        if !matches!(scope.asking, AskMode::RoundTrips(_)) || !self.can_follow_tasks() {
            return false;
        }

        scope.control.request_task().await;
        true
    }

    /// Turns the call into a task, for work that takes longer than a request
    /// may. Ends the call with an error if the client does not support tasks.
    pub async fn require_task(&self) {
        if !self.into_task().await {
            let required: Value = json!({ "extensions": { EXTENSION: {} } });
            self.fail::<()>(Fault::MissingCapability { required }).await;
        }
    }
}
