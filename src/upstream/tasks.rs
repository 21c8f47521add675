//! Tools of legacy upstreams that must run as tasks (2025-11-25, tasks): Larder creates the
//! task and waits for its result, so that any client can call them.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{connections::InUse, error::UpstreamError, link::Link, requests::Requests};
use crate::handler::{Context, Scope};

/// How long the upstream keeps a task.
const TTL: Duration = Duration::from_secs(60 * 60);
/// How often a task's state is asked for if the upstream does not say.
const POLL: Duration = Duration::from_secs(1);
/// The bounds of what the upstream says.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// What makes a call a task.
pub(super) fn request() -> Value {
    json!({ "ttl": TTL.as_secs() * 1000 })
}

/// The task that a result of `tools/call` has created.
pub(super) fn created(result: &mut Value) -> Option<Value> {
    let is_task = result["content"].is_null() && result["task"]["taskId"].is_string();
    is_task.then(|| result["task"].take())
}

/// Waits for a task's result. Passes on its status messages as progress.
pub(super) async fn finish(
    mut task: Value,
    requests: &Requests,
    in_use: &InUse,
    link: &Arc<Link>,
    what: &str,
    scope: &Arc<Scope>,
) -> Result<Value, UpstreamError> {
    let id = json!({ "taskId": task["taskId"] });
    let mut running = Running { link: Arc::clone(link), id: Some(id.clone()) };
    let context = Context::new(Arc::clone(scope), Arc::new(()));
    let (mut steps, mut said) = (0u32, Value::Null);
    while task["status"] == "working" {
        if task["statusMessage"] != said {
            said = task["statusMessage"].take();
            steps += 1;
            context.send_progress(f64::from(steps), None, said.as_str()).await;
        }
        let poll = task["pollInterval"].as_u64().map_or(POLL, Duration::from_millis);
        tokio::time::sleep(poll.clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)).await;
        task = link.request("tasks/get", id.clone()).await?;
    }
    // While it needs input, the result brings the questions. A round may end this call, but
    // not the task.
    running.id = None;
    requests.send(in_use, link, "tasks/result", id, what, scope).await
}

/// Removes the task from a result: the client does not know it.
pub(super) fn remove_from(result: &mut Value) {
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("io.modelcontextprotocol/related-task");
    }
}

/// A task that is cancelled when nobody waits for it any more.
struct Running {
    link: Arc<Link>,
    id: Option<Value>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.link.send_unanswered("tasks/cancel", &id);
        }
    }
}
