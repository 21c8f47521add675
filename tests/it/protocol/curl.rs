//! Requests as people send them with curl: without a session, metadata or media types.

use serde_json::{Value, json};

use crate::support::{Answer, Legacy, Raw, Server, post};

async fn send(server: &Server, accept: Option<&str>, method: &str, params: Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params });
    let request = post(&server.url, &body);
    let request = match accept {
        Some(accept) => request.header("accept", accept),
        None => request,
    };
    Answer::of(request).await
}

#[tokio::test]
async fn a_request_without_a_session_is_answered_with_plain_json() {
    let server = Server::streaming().await;
    for accept in [None, Some("*/*"), Some("application/json")] {
        let answer = send(&server, accept, "tools/list", json!({})).await;
        assert_eq!(answer.json()["id"], "x");
        assert_eq!(answer.result()["tools"][0]["name"], "echo");
        assert_eq!(answer.header("mcp-session-id"), None);
    }
    let headers = "host: localhost\ncontent-type: application/json";
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = Raw::post(&server, headers, body).await;
    assert_eq!(answer.json()["result"]["tools"][0]["name"], "echo");
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
}

#[tokio::test]
async fn all_methods_that_need_no_session_work_without_one() {
    let server = Server::streaming().await;
    let ask = async |method: &str, params: Value| send(&server, None, method, params).await;
    assert_eq!(ask("ping", json!({})).await.result(), json!({}));
    let call = json!({ "name": "add", "arguments": { "a": 2, "b": 3 } });
    assert_eq!(ask("tools/call", call).await.text(), "2 + 3 = 5");
    let read = ask("resources/read", json!({ "uri": "docs://welcome" })).await.result();
    assert_eq!(read["contents"][0]["text"], "Welcome.");
    assert!(ask("resources/list", json!({})).await.result()["resources"].is_array());
    let templates = ask("resources/templates/list", json!({})).await.result();
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "logs://{service}/{date}");
    let discovered = ask("server/discover", json!({})).await.result();
    assert_eq!(discovered["serverInfo"]["name"], "fixture");
}

#[tokio::test]
async fn a_slow_call_without_a_session_is_answered_with_plain_json_too() {
    let server = Server::streaming().await;
    server.control.release("k", 3);
    let call = json!({
        "name": "stepwise", "arguments": { "key": "k", "steps": 2 },
        "_meta": { "progressToken": 1 },
    });
    assert_eq!(send(&server, None, "tools/call", call).await.text(), "done k");
}

#[tokio::test]
async fn methods_that_need_a_session_say_so() {
    let server = Server::start().await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answer = send(&server, None, method, json!({ "uri": "docs://welcome" })).await;
        assert_eq!(answer.refusal(), (400, -32600, Some(json!("x"))));
        assert!(answer.error()["message"].as_str().unwrap().contains("initialize"));
    }
}

#[tokio::test]
async fn an_unknown_method_is_named() {
    let server = Server::start().await;
    for method in ["nope", "Tools/list", "tools/list ", "subscriptions/listen"] {
        let answer = send(&server, None, method, json!({})).await;
        assert_eq!(answer.refusal(), (200, -32601, Some(json!("x"))), "{method}");
        assert!(answer.error()["message"].as_str().unwrap().contains(method));
    }
}

#[tokio::test]
async fn a_notification_without_a_session_is_accepted_and_a_response_is_not() {
    let server = Server::start().await;
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/anything" });
    let taken = Answer::of(post(&server.url, &notification)).await;
    assert_eq!((taken.status, taken.body.len()), (202, 0));
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(Answer::of(post(&server.url, &response)).await.status, 400);
}

#[tokio::test]
async fn the_version_header_may_name_any_legacy_version_but_no_unknown_one() {
    let server = Server::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ping = async |version: &str| {
        let headers = format!(
            "host: localhost\ncontent-type: application/json\nmcp-protocol-version: {version}"
        );
        Raw::post(&server, &headers, ping).await
    };
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(ping(version).await.status, 200, "{version}");
    }
    let refused = ping("1900-01-01").await;
    assert_eq!(refused.status, 400);
    let refused: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    let session = Legacy::of(&server).await;
    assert_eq!(session.send("ping", json!({})).await.result(), json!({}));
}
