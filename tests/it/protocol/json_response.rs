//! A server with `server.json_response`, which answers every request with one message.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Legacy, Modern, Server, ToolState, post};

/// A server that without this setting would answer by a stream at once.
async fn server() -> Server {
    Server::configured(|setup| {
        setup.config.server.json_response = true;
        setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
    })
    .await
}

/// A call that reports progress before its result.
fn call() -> Value {
    json!({
        "name": "stepwise", "arguments": { "key": "k", "steps": 2 },
        "_meta": { "progressToken": "p" },
    })
}

#[tokio::test]
async fn progress_does_not_start_a_stream() {
    let server = server().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    server.control.release("k", 6);
    for answer in [modern.send("tools/call", call()).await, legacy.send("tools/call", call()).await]
    {
        assert_eq!(answer.text(), "done k");
    }
    assert_eq!(server.control.count("k", ToolState::Step(2)), 2);
}

#[tokio::test]
async fn a_client_that_accepts_only_streams_is_refused() {
    let server = server().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let answer = Answer::of(post(&server.url, &body).header("accept", "text/event-stream")).await;
    assert_eq!(answer.status, 406);
    let message = answer.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("application/json") && message.contains("server.json_response"));
}

#[tokio::test]
async fn subscriptions_are_still_streams() {
    let server = server().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let mut listening = modern.listen(1, json!({ "resourcesListChanged": true })).await;
    let mut own = legacy.listen().await;
    assert_eq!(own.next().await.unwrap().data, "", "a priming event");
    modern.create(json!({ "uri": "notes://one", "text": "A note." })).await;
    let changed = "notifications/resources/list_changed";
    assert_eq!(listening.message().await["method"], changed);
    assert_eq!(own.message().await["method"], changed);
}
