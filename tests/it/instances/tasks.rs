//! Tasks that run on one instance while clients ask other instances for them.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{instances, start, start_in};
use crate::support::{Modern, RedisServer, poll, process::Process};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a task of an instance that died may take to fail.
const SOON: std::time::Duration = std::time::Duration::from_secs(15);

fn client(instance: &Process) -> Modern {
    Modern::at(&instance.url).with(json!({ "extensions": { EXTENSION: {} }, "elicitation": {} }))
}

/// Begins a task that counts, and then asks a question; its id.
async fn begin(instance: &Process, to: u32) -> String {
    let count = json!({ "to": to, "every": 10 });
    let task = client(instance).call("count_on", count).await.result();
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    task["taskId"].as_str().unwrap().to_owned()
}

async fn get(instance: &Process, id: &str) -> Value {
    client(instance).send("tasks/get", json!({ "taskId": id })).await.result()
}

/// The task, once an instance says that it has this status.
async fn until(instance: &Process, id: &str, status: &str) -> Value {
    let reached = async || {
        let task = get(instance, id).await;
        (task["status"] == status).then_some(task)
    };
    poll(status, reached).await
}

#[tokio::test]
async fn any_instance_reports_answers_and_cancels_the_tasks_of_any() {
    let redis = RedisServer::start().await;
    let [a, b, c] = instances(&redis).await;
    let id = begin(&a, 5).await;
    let asking = until(&b, &id, "input_required").await;
    let (key, question) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["message"], "For whom?");
    assert_eq!(asking["statusMessage"], "at 5");
    let answers = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
    let update = json!({ "taskId": id, "inputResponses": answers });
    client(&c).send("tasks/update", update).await.result();
    let done = until(&b, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "counted to 5 for Ada");
    assert_eq!(done["createdAt"], asking["createdAt"]);

    let id = begin(&a, 100_000).await;
    client(&b).send("tasks/cancel", json!({ "taskId": id })).await.result();
    let cancelled = get(&c, &id).await;
    assert_eq!(cancelled["status"], "cancelled");
    // It has stopped counting: its state does not change any more.
    assert_eq!(get(&a, &id).await, cancelled);
}

#[tokio::test]
async fn the_tasks_of_a_killed_instance_fail_with_an_error_that_says_to_call_again() {
    let redis = RedisServer::start().await;
    let [mut a, b, c] = instances(&redis).await;
    let (running, done) = (begin(&a, 100_000).await, begin(&a, 1).await);
    until(&a, &done, "input_required").await;
    a.kill().await;
    let killed = Instant::now();
    for id in [&running, &done] {
        let failed = until(&b, id, "failed").await;
        assert_eq!(failed["error"]["code"], -32603);
        assert!(failed["error"]["message"].as_str().unwrap().contains("again"), "{failed}");
        assert!(killed.elapsed() < SOON, "it took {:?}", killed.elapsed());
        // The failure is stored once, for all instances.
        assert_eq!(get(&c, id).await, failed);
    }
}

#[tokio::test]
async fn the_tasks_of_an_instance_that_is_stopped_fail_at_once() {
    let redis = RedisServer::start().await;
    let mut a = start_in(&redis.url(), &[("LARDER_SERVER__GRACE", "0")]).await;
    let b = start(&redis).await;
    let id = begin(&a, 100_000).await;
    a.signal("-TERM").await;
    a.exit_code().await;
    let failed = get(&b, &id).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("has stopped") && message.contains("again"), "{message}");
}
