//! Tasks that one process runs and others are asked for.

use serde_json::{Value, json};
use tokio::{process::Command, time::Instant};

use super::{Replica, replicas};
use crate::support::{Modern, RedisServer, patiently};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// So soon a task of a replica that died has to have failed.
const SOON: std::time::Duration = std::time::Duration::from_secs(15);

fn client(replica: &Replica) -> Modern {
    Modern::at(&replica.url).with(json!({ "extensions": { EXTENSION: {} }, "elicitation": {} }))
}

async fn begin(replica: &Replica, to: u32) -> String {
    let count = json!({ "to": to, "every": 10 });
    let task = client(replica).call("count_on", count).await.result_in_time();
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    task["taskId"].as_str().unwrap().to_owned()
}

async fn get(replica: &Replica, id: &str) -> Value {
    client(replica).send("tasks/get", json!({ "taskId": id })).await.result_in_time()
}

/// The task on that replica, once it is in that state.
async fn until(replica: &Replica, id: &str, status: &str) -> Value {
    let reached = async {
        loop {
            let task = get(replica, id).await;
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    patiently(status, reached).await
}

#[tokio::test]
async fn any_replica_follows_answers_and_cancels_the_tasks_of_any() {
    let redis = RedisServer::start().await;
    let [a, b, c] = replicas(&redis).await;
    let id = begin(&a, 5).await;
    let asking = until(&b, &id, "input_required").await;
    let (key, question) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["message"], "For whom?");
    assert_eq!(asking["statusMessage"], "at 5");
    let answers = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
    let update = json!({ "taskId": id, "inputResponses": answers });
    client(&c).send("tasks/update", update).await.result_in_time();
    let done = until(&b, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "counted to 5 for Ada");
    assert_eq!(done["createdAt"], asking["createdAt"]);

    let id = begin(&a, 100_000).await;
    client(&b).send("tasks/cancel", json!({ "taskId": id })).await.result_in_time();
    let cancelled = get(&c, &id).await;
    assert_eq!(cancelled["status"], "cancelled");
    // It does not count on: nothing changes any more.
    assert_eq!(get(&a, &id).await, cancelled);
}

#[tokio::test]
async fn the_tasks_of_a_killed_replica_fail_with_an_error_that_says_to_call_again() {
    let redis = RedisServer::start().await;
    let [mut a, b, c] = replicas(&redis).await;
    let (running, done) = (begin(&a, 100_000).await, begin(&a, 1).await);
    until(&a, &done, "input_required").await;
    a.kill().await;
    let killed = Instant::now();
    for id in [&running, &done] {
        let failed = until(&b, id, "failed").await;
        assert_eq!(failed["error"]["code"], -32603);
        assert!(failed["error"]["message"].as_str().unwrap().contains("again"), "{failed}");
        assert!(killed.elapsed() < SOON, "it took {:?}", killed.elapsed());
        // Said once: whoever asks later hears the same.
        assert_eq!(get(&c, id).await, failed);
    }
}

#[tokio::test]
async fn the_tasks_of_a_replica_that_is_stopped_fail_at_once() {
    let redis = RedisServer::start().await;
    let mut a = Replica::start_with(&redis, &[("LARDER_SERVER__GRACE", "0")]).await;
    let b = Replica::start(&redis).await;
    let id = begin(&a, 100_000).await;
    let process = a.process.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().await.unwrap().success());
    patiently("its end", a.process.wait()).await.unwrap();
    let failed = get(&b, &id).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("has stopped") && message.contains("again"), "{message}");
}
