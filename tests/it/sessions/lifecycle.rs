//! Sessions from `initialize` to their end.

use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, Legacy, Raw, Server, post};

#[tokio::test]
async fn the_requested_version_is_used_or_the_newest_if_it_is_unknown() {
    let server = Server::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(Legacy::speaking(&server, version).await.version, version);
    }
    for unknown in ["1999-01-01", "2099-01-01", "", "2026-07-28"] {
        assert_eq!(Legacy::speaking(&server, unknown).await.version, "2025-11-25", "{unknown}");
    }
}

#[tokio::test]
async fn the_configuration_limits_the_newest_version() {
    let server = Server::configured(|s| s.config.server.max_version = "2025-06-18".into()).await;
    assert_eq!(Legacy::speaking(&server, "2025-11-25").await.version, "2025-06-18");
    assert_eq!(Legacy::speaking(&server, "2025-03-26").await.version, "2025-03-26");
}

#[tokio::test]
async fn initialize_returns_server_info_and_capabilities() {
    let server = Server::start().await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let result = &one.initialized;
    assert_eq!(result["serverInfo"]["name"], "fixture");
    assert_eq!(result["serverInfo"]["version"], "1.2.3");
    assert_eq!(result["instructions"], "For tests.");
    let capabilities = &result["capabilities"];
    assert!(capabilities["tools"].is_object());
    assert_eq!(capabilities["resources"], json!({ "subscribe": true, "listChanged": true }));
    assert!(capabilities.get("prompts").is_none() && capabilities["logging"].is_object());
    assert!(result.get("resultType").is_none() && result.get("_meta").is_none(), "{result}");
    assert_ne!(one.session, other.session);
    assert!(one.session.len() >= 32 && one.session.bytes().all(|b| (0x21..=0x7e).contains(&b)));
}

#[tokio::test]
async fn initialize_without_a_version_is_refused() {
    let server = Server::start().await;
    for params in [json!({}), json!({ "protocolVersion": 7 })] {
        let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": params });
        let answer = Answer::of(post(&server.url, &body)).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(9))));
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn a_client_that_says_too_much_about_itself_gets_no_session() {
    let server = Server::start().await;
    for (member, large) in [("clientInfo", "name"), ("capabilities", "experimental")] {
        let mut body = Legacy::initialize("2025-11-25");
        body["params"][member][large] = json!({ "x": "y".repeat(16 * 1024) });
        let answer = Answer::of(post(&server.url, &body)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["error"]["code"], -32602, "{member}");
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains("16384"));
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn initialize_accepts_a_legacy_version_header_only() {
    let server = Server::start().await;
    let initialize = Legacy::initialize("2025-11-25");
    let send = async |version: &str| {
        Answer::of(post(&server.url, &initialize).header("mcp-protocol-version", version)).await
    };
    send("2025-11-25").await.result();
    send("2025-03-26").await.result();
    // A modern version header without modern metadata.
    assert_eq!(send("2026-07-28").await.refusal(), (400, -32602, Some(json!(0))));
}

#[tokio::test]
async fn a_session_is_initialized_once() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let again = Answer::of(client.post(&Legacy::initialize("2025-11-25"))).await;
    assert_eq!(again.refusal(), (400, -32600, Some(json!(0))));
}

#[tokio::test]
async fn get_and_delete_need_a_session() {
    let server = Server::start().await;
    for (line, accept) in [
        ("GET /mcp HTTP/1.1", "accept: text/event-stream"),
        ("DELETE /mcp HTTP/1.1", "accept: */*"),
    ] {
        let without = Raw::request(&server, line, &format!("host: localhost\n{accept}"), "").await;
        assert_eq!(without.refusal(), (400, -32600, None), "{line}");
        for session in ["0123", "0123456789abcdef0123456789abcdef", "", "\u{e9}"] {
            let headers = format!("host: localhost\n{accept}\nmcp-session-id: {session}");
            let unknown = Raw::request(&server, line, &headers, "").await;
            assert_eq!(unknown.status, 404, "{line} {session:?}");
        }
    }
    let headers = "host: localhost\naccept: application/json\nmcp-session-id: 0123";
    assert_eq!(Raw::request(&server, "GET /mcp HTTP/1.1", headers, "").await.status, 406);
}

#[tokio::test]
async fn an_unknown_session_is_not_found() {
    let server = Server::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for session in ["0123", "", "\u{e9}"] {
        let headers =
            format!("host: localhost\ncontent-type: application/json\nmcp-session-id: {session}");
        let answer = Raw::post(&server, &headers, ping).await;
        assert_eq!(answer.refusal(), (404, -32600, Some(json!(1))), "{session:?}");
    }
}

#[tokio::test]
async fn a_deleted_session_does_not_exist() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    assert_eq!(client.send("ping", json!({})).await.result(), json!({}));
    let mut stream = client.listen().await;
    assert_eq!(client.delete().await.status, 204);
    while stream.next().await.is_some() {}
    let dead = client.send("ping", json!({})).await;
    assert_eq!(dead.status, 404);
    assert_eq!(dead.error()["message"].as_str().map(|m| m.contains("initialize")), Some(true));
    assert_eq!(client.notify("notifications/initialized", json!({})).await.status, 404);
    assert_eq!(client.get(None).await.status(), 404);
    assert_eq!(client.delete().await.status, 404);
}

#[tokio::test]
async fn an_idle_session_expires_and_a_used_one_does_not() {
    let server = Server::configured(|setup| setup.config.sessions.idle = 60).await;
    let (used, idle) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let listening = Legacy::of(&server).await;
    let _stream = listening.listen().await;
    for _ in 0..3 {
        server.clock.advance(Duration::from_secs(40));
        assert_eq!(used.send("ping", json!({})).await.status, 200);
    }
    assert_eq!(idle.send("ping", json!({})).await.status, 404);
    assert_eq!(listening.send("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn resources_outlive_the_session_that_created_them() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:kept", "text": "kept" })).await;
    client.delete().await;
    let read = Legacy::of(&server).await.send("resources/read", json!({ "uri": "x:kept" })).await;
    assert_eq!(read.result()["contents"][0]["text"], "kept");
}

#[tokio::test]
async fn the_configuration_deletes_resources_with_their_session() {
    let server = Server::configured(|setup| setup.config.sessions.delete_resources = true).await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    one.create(json!({ "uri": "x:one", "text": "1" })).await;
    other.create(json!({ "uri": "x:other", "text": "2" })).await;
    assert_eq!(one.delete().await.status, 204);
    let gone = other.send("resources/read", json!({ "uri": "x:one" })).await;
    assert_eq!(gone.error()["code"], -32002);
    let kept = other.send("resources/read", json!({ "uri": "x:other" })).await.result();
    assert_eq!(kept["contents"][0]["text"], "2");
}

#[tokio::test]
async fn a_session_accepts_any_legacy_version_header_and_no_other() {
    let server = Server::start().await;
    let mut client = Legacy::of(&server).await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        client.version = version.into();
        assert_eq!(client.send("ping", json!({})).await.status, 200, "{version}");
    }
    client.version = "1900-01-01".into();
    assert_eq!(client.send("ping", json!({})).await.status, 400);
}

#[tokio::test]
async fn the_number_of_sessions_is_bounded() {
    let server = Server::configured(|setup| setup.config.sessions.per_principal = 2).await;
    let (first, _second) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let third = Answer::of(post(&server.url, &Legacy::initialize("2025-11-25"))).await;
    assert_eq!(third.status, 429);
    assert!(third.error()["message"].as_str().unwrap().contains("sessions.per_principal"));
    first.delete().await;
    Legacy::of(&server).await;
}
