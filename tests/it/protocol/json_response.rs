//! A server that answers by one message always.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Beat, Legacy, Modern, Server};

/// One that would answer by a stream at once.
async fn server() -> Server {
    Server::configured(|setup| {
        setup.config.server.json_response = true;
        setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
    })
    .await
}

/// A call that has something to say before its end.
fn call() -> Value {
    json!({
        "name": "stepwise", "arguments": { "key": "k", "steps": 2 },
        "_meta": { "progressToken": "p" },
    })
}

#[tokio::test]
async fn what_is_said_on_the_way_makes_no_stream() {
    let server = server().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    server.stage.release("k", 6);
    for answer in [modern.send("tools/call", call()).await, legacy.send("tools/call", call()).await]
    {
        assert_eq!(answer.text(), "done k");
    }
    assert_eq!(server.stage.count("k", Beat::Step(2)), 2);
}

#[tokio::test]
async fn who_takes_only_streams_is_refused() {
    let server = server().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let request = crate::support::http().post(&server.url).header("accept", "text/event-stream");
    let request = request.header("content-type", "application/json").body(body.to_string());
    let answer = Answer::of(request).await;
    assert_eq!(answer.status, 406);
    let message = answer.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("application/json") && message.contains("server.json_response"));
}

#[tokio::test]
async fn who_listens_is_told_by_a_stream_still() {
    let server = server().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let mut listening = modern.listen(1, json!({ "resourcesListChanged": true })).await;
    let mut own = legacy.listen().await;
    // What it could be resumed by.
    assert!(own.next().await.unwrap().data.is_empty());
    modern.create(json!({ "uri": "notes://one", "text": "A note." })).await;
    let changed = "notifications/resources/list_changed";
    assert_eq!(listening.message().await["method"], changed);
    assert_eq!(own.message().await["method"], changed);
}
