//! Batches of 2025-03-26, the path with a slash, and the charset of streams.

use serde_json::{Value, json};

use crate::support::{Answer, Legacy, Modern, Server, http, patiently};

fn request(id: u64, method: &str, params: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params.into() })
}

#[tokio::test]
async fn a_batch_in_a_session_of_its_version_is_answered_by_a_list() {
    let server = Server::start().await;
    let client = Legacy::speaking(&server, "2025-03-26").await;
    let echo = |id, text: &str| {
        request(id, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }))
    };
    let noted = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } });

    let batch = json!([echo(1, "a"), noted, echo(2, "b"), request(3, "no/such", json!({})), 5]);
    let answers = Answer::of(client.post(&batch)).await;
    assert_eq!((answers.status, answers.header("content-type")), (200, Some("application/json")));
    let answers: Value = serde_json::from_slice(&answers.body).unwrap();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4, "{answers:?}");
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of(1)["result"]["content"][0]["text"], "a");
    assert_eq!(of(2)["result"]["content"][0]["text"], "b");
    assert_eq!(of(3)["error"]["code"], -32601);
    assert!(answers.iter().any(|answer| answer["error"]["code"] == -32600), "{answers:?}");

    // Notifications and responses alone have no answer.
    let answer = Answer::of(client.post(&json!([noted, noted]))).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    // A client that takes streams alone gets the list as one event.
    let streamed = http().post(&server.url).header("accept", "text/event-stream");
    let streamed = streamed.header("content-type", "application/json");
    let streamed = streamed.header("mcp-session-id", &client.session);
    let streamed = Answer::of(streamed.body(json!([echo(1, "a"), echo(2, "b")]).to_string())).await;
    let text = std::str::from_utf8(&streamed.body).unwrap();
    let data = text.strip_prefix("data: ").unwrap_or_else(|| panic!("{text}")).trim();
    assert_eq!(serde_json::from_str::<Value>(data).unwrap().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_batch_is_refused_where_there_are_none_and_where_it_is_none() {
    let server = Server::start().await;
    let list = request(1, "tools/list", json!({}));
    for version in ["2025-06-18", "2025-11-25"] {
        let client = Legacy::speaking(&server, version).await;
        let answer = Answer::of(client.post(&json!([list]))).await;
        assert_eq!(answer.refusal(), (400, -32600, None), "{version}");
    }

    let client = Legacy::speaking(&server, "2025-03-26").await;
    for bad in [json!([]), Value::from(vec![list.clone(); 65])] {
        assert_eq!(Answer::of(client.post(&bad)).await.refusal(), (400, -32600, None));
    }
    let initialize = Answer::of(client.post(&json!([Legacy::initialize("2025-03-26")]))).await;
    let answers: Value = serde_json::from_slice(&initialize.body).unwrap();
    assert_eq!(answers[0]["error"]["code"], -32600, "{answers}");
    assert_eq!(client.call("echo", json!({ "text": "on" })).await.text(), "on");
}

#[tokio::test]
async fn the_endpoint_is_served_with_a_slash_at_its_end() {
    let server = Server::start().await;
    let url = format!("{}/", server.url);
    let client = Legacy::at_url(&url).await;
    assert_eq!(client.call("echo", json!({ "text": "a" })).await.text(), "a");
    let events = client.listen().await;
    drop(events);
    assert_eq!(client.delete().await.status, 204);
    let body = Modern::body(&json!(1), "tools/list", json!({}));
    let modern = http().post(&url).header("content-type", "application/json");
    let modern = modern.header("accept", "application/json, text/event-stream");
    let modern =
        modern.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
    assert_eq!(Answer::of(modern.body(body.to_string())).await.status, 200);
    for other in ["//", "/x", "/x/"] {
        let url = format!("{}{other}", server.url);
        let answer = patiently("an answer", http().post(&url).send()).await.unwrap();
        assert_eq!(answer.status(), 404, "{other}");
    }
}
