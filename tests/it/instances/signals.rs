//! What a client says to one replica of a call that runs on another.

use serde_json::json;

use super::{counting, replicas, session};
use crate::support::{Answer, RedisServer};

/// Counts for longer than any test waits.
const LONG: (u32, u64) = (100_000, 20);

#[tokio::test]
async fn a_call_is_cancelled_from_anywhere() {
    let redis = RedisServer::start().await;
    let [a, b] = replicas(&redis).await;
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
    let [a, b] = replicas(&redis).await;
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
async fn a_session_that_is_deleted_has_ended_everywhere_at_once() {
    let redis = RedisServer::start().await;
    let [a, b, c] = replicas(&redis).await;
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

#[tokio::test]
async fn a_log_level_holds_everywhere_at_once() {
    let redis = RedisServer::start().await;
    let [a, b] = replicas(&redis).await;
    let on_a = session(&a).await;
    let on_b = on_a.at(&b.url);
    on_a.send("ping", json!({})).await.result();
    on_b.send("logging/setLevel", json!({ "level": "error" })).await.result();
    on_a.send("ping", json!({})).await.result();
    let refused = on_a.send("logging/setLevel", json!({ "level": "loud" })).await.error();
    assert_eq!(refused["code"], -32602, "{refused}");
}

#[tokio::test]
async fn a_subscription_made_on_one_replica_hears_changes_made_on_another_once() {
    let redis = RedisServer::start().await;
    let [a, b, c] = replicas(&redis).await;
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
    // The mark shows that nothing came twice.
    on_b.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
    assert_eq!(events.message().await["params"]["uri"], "x:1");
    on_a.create(json!({ "uri": "x:2", "text": "1" })).await;
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
}
