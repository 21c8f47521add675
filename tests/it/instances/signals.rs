//! Messages that a client sends to one instance and that concern others.

use serde_json::json;

use super::{counting, instances, session};
use crate::support::{
    Answer, Legacy, RedisServer, eventually,
    process::{Process, example},
};

/// The arguments of a `count` that takes longer than any test.
const LONG: (u32, u64) = (100_000, 20);

#[tokio::test]
async fn a_call_is_cancelled_from_anywhere() {
    let redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let (events, _) = counting(&on_a, "x", LONG.0, LONG.1).await;
    let on_b = on_a.at(&b.url);
    let taken = on_b.notify("notifications/cancelled", json!({ "requestId": "x" })).await;
    assert_eq!(taken.status, 202);
    let heard = events.messages().await;
    assert!(heard.iter().all(|message| message.get("id").is_none()), "it was answered");
}

#[tokio::test]
async fn a_question_is_answered_anywhere() {
    let redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let mut events = on_a.stream_call(1, "greet", json!({})).await;
    assert_eq!(events.next().await.unwrap().data, "");
    let question = events.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "name": "Ada" } },
    });
    let foreign = session(&b).await;
    for client in [foreign, on_a.at(&b.url)] {
        assert_eq!(Answer::of(client.post(&answer)).await.status, 202);
    }
    let response = events.message().await;
    assert_eq!(response["result"]["content"][0]["text"], "Hello, Ada.", "{response}");
}

#[tokio::test]
async fn a_deleted_session_has_ended_on_all_instances_at_once() {
    let redis = RedisServer::start().await;
    let [a, b, c] = instances(&redis).await;
    let on_a = session(&a).await;
    let (call, _) = counting(&on_a, 1, LONG.0, LONG.1).await;
    let (on_b, on_c) = (on_a.at(&b.url), on_a.at(&c.url));
    let own = on_c.listen().await;
    for client in [&on_a, &on_b, &on_c] {
        client.send("ping", json!({})).await.result();
    }
    assert_eq!(on_b.delete().await.status, 204);
    for client in [&on_a, &on_b, &on_c] {
        assert_eq!(client.send("ping", json!({})).await.status, 404);
    }
    let heard = call.messages().await;
    assert!(heard.iter().all(|message| message.get("id").is_none()), "it was answered");
    own.messages().await;
}

/// The number of log messages of the conformance server's tool that logs, all of level `info`.
const LOGGED: usize = 3;

/// Calls that tool; the number of log messages on the call's stream.
async fn logged(client: &Legacy) -> usize {
    let answer = client.call("test_tool_with_logging", json!({})).await;
    answer.result();
    String::from_utf8_lossy(&answer.body).matches("\"notifications/message\"").count()
}

#[tokio::test]
async fn a_log_level_takes_effect_on_all_instances() {
    let redis = RedisServer::start().await;
    let mut instances = Vec::new();
    for _ in 0..3 {
        let mut command = example("conformance");
        command.args(["--store", &redis.url()]);
        instances.push(Process::start(command).await);
    }
    let on_a = session(&instances[0]).await;
    let clients: Vec<_> = instances.iter().map(|instance| on_a.at(&instance.url)).collect();
    for client in &clients {
        assert_eq!(logged(client).await, LOGGED, "before a level is set");
    }
    for (client, level, expected) in
        [(&clients[1], "error", 0), (&clients[2], "debug", LOGGED), (&clients[0], "warning", 0)]
    {
        client.send("logging/setLevel", json!({ "level": level })).await.result();
        for client in &clients {
            let in_effect = async || logged(client).await == expected;
            eventually("the level to take effect", in_effect).await;
        }
    }
    let refused = on_a.send("logging/setLevel", json!({ "level": "loud" })).await.error();
    assert_eq!(refused["code"], -32602, "{refused}");
    for client in &clients {
        assert_eq!(logged(client).await, 0, "an invalid level changed the level");
    }
}

#[tokio::test]
async fn a_subscription_on_one_instance_is_notified_once_of_changes_on_another() {
    let redis = RedisServer::start().await;
    let [a, b, c] = instances(&redis).await;
    let on_a = session(&a).await;
    let (on_b, on_c) = (on_a.at(&b.url), on_a.at(&c.url));
    on_a.create(json!({ "uri": "x:1", "text": "1" })).await;
    on_b.send("resources/subscribe", json!({ "uri": "x:1" })).await.result();
    let mut events = on_c.listen().await;
    events.next().await.unwrap();
    let listed = events.message().await;
    assert_eq!(listed["method"], "notifications/resources/list_changed");
    for (client, text) in [(&on_a, "2"), (&on_b, "3"), (&on_c, "4")] {
        client.call("update_resource", json!({ "uri": "x:1", "text": text })).await.text();
        let message = events.message().await;
        assert_eq!(message["params"]["uri"], "x:1", "{message}");
    }
    // The next notifications are those of the deletion: nothing came twice.
    on_b.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
    assert_eq!(events.message().await["params"]["uri"], "x:1");
    on_a.create(json!({ "uri": "x:2", "text": "1" })).await;
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
}
