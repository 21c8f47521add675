//! Calls in the modern era: one message or a stream, and cancellation.

use serde_json::{Value, json};

use crate::support::{Answer, Events, Modern, Server, ToolState, accepting, patiently};

#[tokio::test]
async fn a_result_that_is_ready_at_once_is_one_message() {
    for server in [Server::start().await, Server::streaming().await] {
        let answer = Modern::of(&server).call("add", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(answer.text(), "2 + 3 = 5");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn a_slow_call_delays_nobody_else() {
    let server = Server::streaming().await;
    let (slow, other) = (Modern::of(&server), Modern::of(&server));
    let mut events = slow.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    server.control.reached("k", ToolState::Started).await;
    assert!(!other.list("tools/list", "tools").await.is_empty());
    assert!(!server.control.has("k", ToolState::Finished));
    server.control.release("k", 1);
    assert_eq!(events.message().await["result"]["content"][0]["text"], "done k");
}

#[tokio::test]
async fn a_slow_result_comes_on_a_stream() {
    let server = Server::streaming().await;
    let client = Modern::of(&server);
    let mut events = client.stream_call("a", "stepwise", json!({ "key": "k" })).await;
    assert_eq!(events.headers["x-accel-buffering"], "no");
    server.control.release("k", 1);
    let message = events.message().await;
    assert_eq!(message["id"], "a");
    assert_eq!(message["result"]["content"][0]["text"], "done k");
    events.end().await;
    assert!(!events.raw().contains("id:"), "an id to resume by: {}", events.raw());
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    server.control.release("k", 4);
    let events = client.stream_call(7, "stepwise", json!({ "key": "k", "steps": 3 })).await;
    let messages = events.messages().await;
    assert_eq!(messages.len(), 4);
    for (at, message) in messages[..3].iter().enumerate() {
        assert_eq!(message["method"], "notifications/progress");
        let params = &message["params"];
        assert_eq!(params["progressToken"], "token");
        assert_eq!(params["progress"].as_f64(), Some(f64::from(u32::try_from(at).unwrap()) + 1.0));
        assert_eq!(params["total"].as_f64(), Some(3.0));
        assert_eq!(params["message"], "on the way");
    }
    assert_eq!(messages[3]["id"], 7);
    assert_eq!(messages[3]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn progress_increases_strictly_whatever_the_handler_reports() {
    let server = Server::start().await;
    let values = json!({ "values": [1.0, 1.0, 0.5, 2.0, -1.0, 2.5] });
    let messages = Modern::of(&server).stream_call(1, "progress", values).await.messages().await;
    let told: Vec<_> = messages.iter().filter_map(|m| m["params"]["progress"].as_f64()).collect();
    assert_eq!(told, [1.0, 2.0, 2.5]);
}

#[tokio::test]
async fn progress_is_sent_only_with_a_progress_token() {
    let server = Server::start().await;
    let answer = Modern::of(&server).call("progress", json!({ "values": [1.0, 2.0] })).await;
    assert_eq!(answer.text(), "done");
}

#[tokio::test]
async fn a_client_that_accepts_one_form_gets_that_form() {
    let server = Server::streaming().await;
    let client = Modern::of(&server);
    server.control.release("k", 2);
    let params = json!({
        "name": "stepwise", "arguments": { "key": "k", "steps": 1 },
        "_meta": { "progressToken": 1 },
    });
    let request = accepting("application/json", client.request(1, "tools/call", params));
    assert_eq!(Answer::of(request).await.text(), "done k");

    let request = client.request(1, "tools/list", json!({}));
    let request = accepting("text/event-stream", request).send();
    let events = Events::of(patiently("a stream", request).await.unwrap());
    assert!(events.messages().await[0]["result"]["tools"].is_array());
}

#[tokio::test]
async fn a_closed_connection_cancels_a_streamed_call() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    server.control.release("k", 1);
    let mut events = client.stream_call(1, "stepwise", json!({ "key": "k", "steps": 2 })).await;
    events.message().await;
    drop(events);
    server.control.reached("k", ToolState::Dropped).await;
    assert_eq!(client.call("echo", json!({ "text": "still here" })).await.text(), "still here");
}

#[tokio::test]
async fn a_closed_connection_cancels_a_call_that_has_sent_nothing_yet() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("stepwise", json!({ "key": "k" })).await }
    });
    server.control.reached("k", ToolState::Started).await;
    call.abort();
    server.control.reached("k", ToolState::Dropped).await;
}

#[tokio::test]
async fn twenty_running_calls_delay_no_other_request() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            let arguments = json!({ "key": format!("k{n}") });
            tokio::spawn(async move { client.call("stepwise", arguments).await.text() })
        })
        .collect();
    for n in 0..20 {
        server.control.reached(&format!("k{n}"), ToolState::Started).await;
    }
    assert!(client.send("tools/list", json!({})).await.result()["tools"].is_array());
    for n in (0..20).rev() {
        server.control.release(&format!("k{n}"), 1);
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), format!("done k{n}"));
    }
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_call_only() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let failure = client.call("panics", json!({})).await.failure();
    assert!(failure.contains("panics") && !failure.contains("secret"), "{failure}");
    let refused = client.send("resources/read", json!({ "uri": "docs://panics" })).await;
    assert_eq!(refused.refusal(), (200, -32603, Some(json!(1))));
    assert!(!refused.error().to_string().contains("secret"));
    assert_eq!(client.call("echo", json!({ "text": "on" })).await.text(), "on");
}

#[tokio::test]
async fn the_error_of_a_tool_is_its_result() {
    let server = Server::start().await;
    let failure = Modern::of(&server).call("fails", json!({})).await.failure();
    assert_eq!(failure, "Nothing to see. Look elsewhere.");
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let server = Server::start().await;
    let answer = Modern::of(&server).call("nope", json!({})).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    assert_eq!(answer.error()["message"], "Unknown tool: nope");
}

#[tokio::test]
async fn equal_request_ids_of_two_clients_do_not_collide() {
    let server = Server::start().await;
    let (one, other) = (Modern::of(&server), Modern::of(&server));
    let uri_of = |answer: Answer| -> Value { answer.result()["content"][1]["uri"].clone() };
    let first = uri_of(one.call("park", json!({ "lines": 1 })).await);
    let second = uri_of(other.call("park", json!({ "lines": 2 })).await);
    assert_ne!(first, second);
    assert_ne!(one.read(first.as_str().unwrap()).await, one.read(second.as_str().unwrap()).await);
}
