//! Upstreams over Streamable HTTP.

use std::{
    convert::Infallible,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
    routing,
};
use futures_util::{StreamExt, stream};
use larder::{
    Registry,
    config::{AuthMode, TokenConfig},
    tools::{self, ToolOptions},
    upstream::{Remote, Settings, Upstream},
};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    sync::Notify,
};

use super::{command_line, in_front_of, listed, odd, package, text};
use crate::support::{Legacy, Modern, Server, eventually, free_port, sha256};

pub(super) fn remote(name: &str, url: &str) -> Settings {
    Settings::new(name, Remote { url: url.into(), ..Remote::default() })
}

/// The server of the other tests, up to this version.
pub(super) async fn upstream(version: &'static str) -> Server {
    Server::configured(|setup| setup.config.server.max_version = version.into()).await
}

#[tokio::test]
async fn both_eras_work_over_http() {
    for version in ["2025-11-25", "2026-07-28"] {
        let upstream = upstream(version).await;
        // Beside another one, so that names do not collide with Larder's own.
        let server = in_front_of(vec![remote("far", &upstream.url), odd("near", &[])]).await;
        let legacy = Legacy::of(&server).await;
        let tools = listed(&legacy).await;
        assert!(tools.contains_key("far__echo") && tools.contains_key("near__echo"), "{version}");
        let arguments = json!({ "text": "ä".repeat(10) });
        let one = legacy.call("far__echo", arguments.clone()).await.result();
        let other = Modern::of(&server).call("far__echo", arguments).await.result();
        for result in [one, other] {
            assert_eq!(text(&result), "ä".repeat(10), "{version}");
        }
        let large = json!({ "text": "far and wide\n".repeat(10_000) });
        let stored = legacy.call("far__echo", large).await.result();
        assert!(text(&stored).starts_with("PREVIEW ONLY"), "{stored}");
    }
}

/// An upstream that sends a message over its limit on the stream of notifications while a call runs,
/// and answers the call when Larder has read the next notification.
async fn too_long_on_the_stream_of_notifications() -> Settings {
    const LIMIT: usize = 64 << 10;
    let (called, listed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let lists = Arc::new(AtomicUsize::new(0));

    let begun = Arc::clone(&called);
    let notifications = move || async move {
        let long = "x".repeat(2 * LIMIT);
        let messages = [
            format!(
                r#"{{"params":{{"level":"info","data":"{long}"}},"method":"notifications/message","jsonrpc":"2.0"}}"#
            ),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        ];
        let events = messages.map(|message| format!("data: {message}\n\n")).concat();
        let sent = stream::once(async move {
            begun.notified().await;
            Ok::<_, Infallible>(events)
        });
        let body = Body::from_stream(sent.chain(stream::pending()));
        Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
    };
    let answer = move |body: Bytes| async move {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let Some(id) = request.get("id") else { return String::new() };
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "far", "version": "1" },
            }),
            "tools/list" => {
                if lists.fetch_add(1, Ordering::Relaxed) > 0 {
                    listed.notify_one();
                }
                json!({ "tools": [{ "name": "wait", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                called.notify_one();
                listed.notified().await;
                json!({ "content": [{ "type": "text", "text": "waited" }] })
            }
            _ => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                return json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
            }
        };
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
    };

    let router = Router::new().route("/mcp", routing::post(answer).get(notifications));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut settings = remote("far", &url);
    settings.max_message = LIMIT;
    settings
}

#[tokio::test]
async fn a_message_over_the_limit_fails_no_call_that_it_cannot_answer() {
    let server = in_front_of(vec![too_long_on_the_stream_of_notifications().await]).await;
    let client = Legacy::of(&server).await;
    let waited = client.call("wait", json!({})).await.result();
    assert_eq!(text(&waited), "waited");
}

/// A server of npm over HTTP, which may not listen yet, and its URL.
pub(super) fn everything() -> (Child, String) {
    let everything = package("everything", &["streamableHttp"]);
    let line = command_line(&everything);
    let port = free_port().to_string();
    let mut command = Command::new(&line[0]);
    let command = command.args(&line[1..]).env("PORT", &port).kill_on_drop(true);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

#[tokio::test]
async fn a_server_of_others_works_over_http() {
    let (mut child, url) = everything();
    let server = in_front_of(vec![remote("everything", &url)]).await;
    let client = Legacy::of(&server).await;
    let mut sum = Value::Null;
    eventually("the start", async || {
        let result = client.call("get-sum", json!({ "a": 2, "b": 3 })).await;
        sum = result.json()["result"].clone();
        text(&sum) == "The sum of 2 and 3 is 5."
    })
    .await;
    let long = json!({ "duration": 0.2, "steps": 4 });
    let mut events = client.stream_call(1, "trigger-long-running-operation", long).await;
    assert_eq!(events.next().await.unwrap().data, "");
    for step in 1..=4 {
        let message = events.message().await;
        assert_eq!(message["params"]["progress"].as_f64(), Some(f64::from(step)), "{message}");
    }
    child.kill().await.unwrap();
}

/// A token that is its name.
pub(super) fn token(name: &str) -> TokenConfig {
    TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: Vec::new(),
        groups: Vec::new(),
        expires: None,
    }
}

#[tokio::test]
async fn a_forgotten_session_heals_unseen_and_no_token_is_passed_on() {
    let tokens = vec![token("of-the-gateway")];
    let upstream = Server::configured(|setup| {
        setup.config.server.max_version = "2025-11-25".into();
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = tokens;
    })
    .await;
    let mut far = remote("far", &upstream.url);
    let headers = [("authorization".to_owned(), "Bearer of-the-gateway".to_owned())];
    let headers = headers.into();
    far.target = Remote { url: upstream.url.clone(), headers, ..Remote::default() }.into();
    let mut builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    for provider in Upstream::all(vec![far], builder.tool_names()) {
        builder = builder.provider(provider);
    }
    let registry = builder.build().unwrap();
    let tokens = vec![token("of-the-client")];
    let server = Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = tokens;
        setup.offers = Box::new(|_, _| registry);
    })
    .await;
    let client = Modern::bearing(&server, "of-the-client");
    assert_eq!(text(&client.call("echo", json!({ "text": "a" })).await.result()), "a");
    upstream.clock.advance(Duration::from_secs(30 * 24 * 3600));
    assert_eq!(text(&client.call("echo", json!({ "text": "b" })).await.result()), "b");
}

#[tokio::test]
async fn one_that_cannot_be_reached_says_so() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let server = in_front_of(vec![remote("far", &url)]).await;
    let refused = Legacy::of(&server).await.call("echo", json!({})).await.result();
    let said = text(&refused);
    assert!(said.starts_with("far could not be started (Connection refused"), "{said}");
}
