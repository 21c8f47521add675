//! Tools of legacy upstreams that must run as tasks (2025-11-25, tasks): Larder creates the
//! task and waits for its result, so that any client can call them.

use std::{sync::Arc, time::Duration};

use larder_server::handler::{Context, Scope};
use serde_json::{Value, json};

use super::{
    connections::InUse,
    error::UpstreamError,
    link::Link,
    received::{RawResult, TaskState},
    requests::Requests,
};

/// How long the upstream keeps a task.
const TTL: Duration = Duration::from_secs(60 * 60);
/// How often a task's state is asked for if the upstream does not say.
const POLL: Duration = Duration::from_secs(1);
/// The bounds of what the upstream says.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// The member of a call's params that makes it a task.
pub(super) fn request() -> Value {
    json!({ "ttl": TTL.as_secs() * 1000 })
}

/// Waits for a task's result. Passes on its status messages as progress.
pub(super) async fn finish(
    mut task: TaskState,
    requests: &Requests,
    in_use: &InUse,
    link: &Arc<Link>,
    what: &str,
    scope: &Arc<Scope>,
) -> Result<RawResult, UpstreamError> {
    let id = json!({ "taskId": task.id });
    let mut running = RunningTask { link: Arc::clone(link), id: Some(id.clone()) };
    let context = Context::new(Arc::clone(scope), Arc::new(()));
    let mut steps = 0u32;
    let mut said = None;

    while task.is_working {
        if task.message.is_some() && task.message != said {
            said = task.message;
            steps += 1;
            context.send_progress(f64::from(steps), None, said.as_deref()).await;
        }
        let poll = task.poll.unwrap_or(POLL);
        tokio::time::sleep(poll.clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)).await;
        task = link.request("tasks/get", id.clone()).await?;
    }

    // The result brings the questions of a task that needs input. A round may end this call, but
    // not the task.
    running.id = None;
    requests.send(in_use, link, "tasks/result", id, what, scope).await
}

/// A task that is cancelled when nobody waits for it any more.
struct RunningTask {
    link: Arc<Link>,
    id: Option<Value>,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.link.send_unanswered("tasks/cancel", &id);
        }
    }
}
