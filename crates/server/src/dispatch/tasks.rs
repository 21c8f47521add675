//! `tasks/get`, `tasks/update`, `tasks/cancel`, and calls that continue as tasks.

use std::{collections::BTreeMap, sync::Arc};

use larder_protocol::{ClientFacts, Fault, OtherMembers, Params, quote::shortened};
use larder_store::task::{EXTENSION, TaskEnd, TaskRun};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{Instrument, Span};

use super::{Dispatcher, End, Reply, lifecycle::Lifecycle, running::Handler};
use crate::handler::{Polled, Scope};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
    #[serde(default)]
    input_responses: BTreeMap<String, Value>,
}

impl Dispatcher {
    pub(super) async fn get_task(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let TaskParams { task_id, .. } = task_params(params, &scope.client)?;
        let task = self.tasks.get(scope.identity.owner(), &task_id).await?;
        Ok(Reply::Task(Box::new(task.ok_or_else(|| unknown_task(&task_id))?)))
    }

    pub(super) async fn update_task(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let TaskParams { task_id, input_responses } = task_params(params, &scope.client)?;
        let found = self.tasks.answer(scope.identity.owner(), &task_id, input_responses).await?;
        if found { Ok(Reply::Empty) } else { Err(unknown_task(&task_id)) }
    }

    pub(super) async fn cancel_task(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let TaskParams { task_id, .. } = task_params(params, &scope.client)?;
        let found = self.tasks.cancel(scope.identity.owner(), &task_id).await?;
        if found { Ok(Reply::Empty) } else { Err(unknown_task(&task_id)) }
    }

    /// Continues a call in the background, as a task, with its permit and metrics, in the current
    /// span.
    pub(super) fn continue_as_task(
        &self,
        mut handler: Handler,
        task: Arc<dyn TaskRun>,
        mut lifecycle: Lifecycle,
    ) {
        handler.control.become_task(Arc::clone(&task));
        lifecycle.detach();

        let span = Span::current();
        let stopping = self.stopping.clone();
        let run = async move {
            let result = tokio::select! {
                biased;
                // The task store has recorded the cancellation.
                () = task.cancelled().cancelled() => return lifecycle.interrupt(End::Cancelled),
                (end, _) = lifecycle.deadline().passed(&stopping) => {
                    lifecycle.interrupt(end);
                    let stopped = Fault::Unavailable("The server has stopped. Call the tool again.".into());
                    return task.finish(TaskEnd::Failed(stopped)).await;
                }
                result = handler.poll() => result,
            };

            let outcome = match result {
                Polled::Returned(outcome) => outcome,
                Polled::Failed(fault) => Err(fault),
                Polled::Suspended(_) => Err(without_result()),
            };

            lifecycle.finish(&outcome);
            task.finish(task_end(outcome)).await;
        };

        self.task_calls.spawn(run.instrument(span));
    }
}

fn task_end(outcome: Result<Reply, Fault>) -> TaskEnd {
    let result = match outcome {
        Ok(Reply::CallTool(reply)) => serde_json::to_value(reply.result),
        Ok(_) => return TaskEnd::Failed(without_result()),
        Err(fault) => return TaskEnd::Failed(fault),
    };

    match result {
        Ok(mut result) => {
            if let Some(blocks) = result.get_mut("content") {
                OtherMembers::restore(blocks);
            }
            OtherMembers::restore(&mut result);
            TaskEnd::Completed(result)
        }
        Err(_) => TaskEnd::Failed(Fault::Internal("The result cannot be written.".into())),
    }
}

fn without_result() -> Fault {
    Fault::Internal("The task ended without a result.".into())
}

fn task_params(params: &Params, client: &ClientFacts) -> Result<TaskParams, Fault> {
    if !client.has_extension(EXTENSION) {
        return Err(Fault::MissingCapability {
            required: json!({ "extensions": { EXTENSION: {} } }),
        });
    }
    params.parse()
}

fn unknown_task(id: &str) -> Fault {
    Fault::invalid_params(format!("Unknown task: {}. It may have expired.", shortened(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_task_is_named_without_invisible_characters() {
        let message = unknown_task("a\u{202e}b").to_string();
        assert!(message.contains("Unknown task: a") && !message.contains('\u{202e}'), "{message}");
    }
}
