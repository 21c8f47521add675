//! Calls in a session: their form, their cancellation, and lost connections.

use serde_json::json;

use crate::support::{Legacy, Server, ToolState, messages};

#[tokio::test]
async fn a_result_that_is_ready_at_once_is_one_message() {
    for server in [Server::start().await, Server::streaming().await] {
        let client = Legacy::of(&server).await;
        let answer = client.call("add", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(answer.text(), "2 + 3 = 5");
    }
}

#[tokio::test]
async fn a_stream_begins_with_a_priming_event() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let mut events = client.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    let priming = events.next().await.unwrap();
    assert_eq!(priming.data, "");
    assert!(!priming.id.is_empty());
    assert!(priming.retry.is_some());
    server.control.release("k", 1);
    assert_eq!(events.message().await["result"]["content"][0]["text"], "done k");
    events.end().await;
}

#[tokio::test]
async fn clients_of_older_versions_get_no_priming_event() {
    let server = Server::streaming().await;
    for version in ["2025-03-26", "2025-06-18"] {
        let client = Legacy::speaking(&server, version).await;
        server.control.release("k", 2);
        let call = client.stream_call(1, "stepwise", json!({ "key": "k", "steps": 1 }));
        let events = call.await.rest().await;
        assert!(events.iter().all(|event| !event.data.is_empty()), "{events:?}");
    }
}

#[tokio::test]
async fn the_version_of_the_session_and_not_the_header_decides_on_the_priming_event() {
    let server = Server::streaming().await;
    let mut client = Legacy::of(&server).await;
    client.version = "2025-03-26".into();
    server.control.release("k", 2);
    let call = client.stream_call(1, "stepwise", json!({ "key": "k", "steps": 1 }));
    let events = call.await.rest().await;
    assert_eq!(events[0].data, "");
}

#[tokio::test]
async fn progress_comes_before_the_result_and_each_event_has_its_own_id() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    server.control.release("k", 3);
    let call = client.stream_call("x", "stepwise", json!({ "key": "k", "steps": 2 }));
    let events = call.await.rest().await;
    let ids: std::collections::HashSet<_> = events.iter().map(|event| &event.id).collect();
    assert_eq!((ids.len(), events.len()), (4, 4), "{events:?}");
    let messages = messages(&events);
    assert_eq!(messages[0]["params"]["progress"].as_f64(), Some(1.0));
    assert_eq!(messages[1]["params"]["progress"].as_f64(), Some(2.0));
    assert_eq!(messages[2]["id"], "x");
    assert!(messages[2]["result"].get("resultType").is_none());
    assert!(messages[2]["result"].get("_meta").is_none());
}

#[tokio::test]
async fn a_closed_connection_does_not_cancel_a_call() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let mut events = client.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    events.next().await;
    drop(events);
    assert_eq!(client.send("ping", json!({})).await.status, 200);
    server.control.release("k", 1);
    server.control.reached("k", ToolState::Finished).await;
    assert!(!server.control.has("k", ToolState::Dropped));
}

#[tokio::test]
async fn a_closed_connection_does_not_cancel_a_call_that_has_sent_nothing_yet() {
    let server = Server::start().await;
    let client = std::sync::Arc::new(Legacy::of(&server).await);
    let call = tokio::spawn({
        let client = std::sync::Arc::clone(&client);
        async move { client.call("stepwise", json!({ "key": "k" })).await }
    });
    server.control.reached("k", ToolState::Started).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(client.send("ping", json!({})).await.status, 200);
    server.control.release("k", 1);
    server.control.reached("k", ToolState::Finished).await;
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_and_not_answered() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let mut events = client.stream_call("c", "stepwise", json!({ "key": "k" })).await;
    let priming = events.next().await.unwrap();
    let other = client.stream_call("d", "stepwise", json!({ "key": "other" })).await;
    let taken = client.notify("notifications/cancelled", json!({ "requestId": "c" })).await;
    assert_eq!((taken.status, taken.body.len()), (202, 0));
    server.control.reached("k", ToolState::Dropped).await;
    assert!(events.messages().await.is_empty());
    // A resumed stream has no response either.
    assert!(client.resume(&priming.id).await.messages().await.is_empty());
    // The other call goes on.
    server.control.release("other", 1);
    assert_eq!(other.messages().await[0]["id"], "d");
}

#[tokio::test]
async fn a_cancelled_call_that_has_sent_nothing_yet_is_not_answered() {
    let server = Server::start().await;
    let client = std::sync::Arc::new(Legacy::of(&server).await);
    let call = tokio::spawn({
        let client = std::sync::Arc::clone(&client);
        async move { client.call("stepwise", json!({ "key": "k" })).await }
    });
    server.control.reached("k", ToolState::Started).await;
    client.notify("notifications/cancelled", json!({ "requestId": 1, "reason": "bored" })).await;
    server.control.reached("k", ToolState::Dropped).await;
    let answer = call.await.unwrap();
    assert!(answer.body.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn the_cancellation_of_an_unknown_request_is_ignored() {
    let server = Server::streaming().await;
    let (client, stranger) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let events = client.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    for params in [
        json!({ "requestId": 99 }),
        json!({ "requestId": "1" }),
        json!({}),
        json!({ "requestId": null }),
    ] {
        assert_eq!(client.notify("notifications/cancelled", params).await.status, 202);
    }
    // The id is that of a call in another session.
    stranger.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    server.control.release("k", 1);
    assert_eq!(events.messages().await[0]["id"], 1);
}

#[tokio::test]
async fn ending_the_session_stops_its_calls() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let events = client.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    client.delete().await;
    server.control.reached("k", ToolState::Dropped).await;
    assert!(events.messages().await.is_empty());
}

#[tokio::test]
async fn a_running_call_delays_no_other_request() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let slow = client.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    assert!(client.send("tools/list", json!({})).await.result()["tools"].is_array());
    let other = Legacy::of(&server).await;
    assert!(other.send("tools/list", json!({})).await.result()["tools"].is_array());
    server.control.release("k", 1);
    assert_eq!(slow.messages().await.len(), 1);
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_call_only() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let failure = client.call("panics", json!({})).await.failure();
    assert!(!failure.contains("secret"), "{failure}");
    assert_eq!(client.call("echo", json!({ "text": "on" })).await.text(), "on");
}
