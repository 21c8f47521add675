//! Log messages: who gets which, and on which stream.

use std::sync::Arc;

use larder::{
    protocol::LogLevel,
    registry::{Builder, Tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Ctx, Events, Legacy, Modern, Server, Stage, patiently};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Logs one message of each level.
#[derive(Deserialize, JsonSchema)]
struct LogAll {}

fn offers(builder: Builder<Arc<Stage>>) -> Builder<Arc<Stage>> {
    builder.tool(Tool::new(|ctx: Ctx, _: LogAll| async move {
        for (level, name) in [
            (LogLevel::Debug, "debug"),
            (LogLevel::Info, "info"),
            (LogLevel::Notice, "notice"),
            (LogLevel::Warning, "warning"),
            (LogLevel::Error, "error"),
            (LogLevel::Critical, "critical"),
            (LogLevel::Alert, "alert"),
            (LogLevel::Emergency, "emergency"),
        ] {
            ctx.log(level, json!({ "said": name })).await;
        }
        "done"
    }))
}

/// The levels of all log messages before the result.
async fn levels(events: Events) -> Vec<String> {
    let messages = events.messages().await;
    let (result, logged) = messages.split_last().unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    let level = |message: &Value| {
        assert_eq!(message["method"], "notifications/message");
        assert_eq!(message["params"]["level"], message["params"]["data"]["said"]);
        message["params"]["level"].as_str().unwrap().to_owned()
    };
    logged.iter().map(level).collect()
}

const CALL: &str = "tools/call";

fn call(level: Option<&str>) -> Value {
    match level {
        None => json!({ "name": "log_all", "arguments": {} }),
        Some(level) => json!({ "name": "log_all", "arguments": {}, "_meta": { LEVEL: level } }),
    }
}

#[tokio::test]
async fn stateless_requests_get_what_they_ask_for_on_their_own_stream() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let mut listen = client.listen("sub", json!({ "toolsListChanged": true })).await;
    for (level, heard) in [("debug", 8), ("info", 7), ("error", 4), ("emergency", 1)] {
        let levels = levels(client.stream(1, CALL, call(Some(level))).await).await;
        assert_eq!((levels.len(), levels[0].as_str()), (heard, level));
    }
    // The subscription heard nothing of it, only of its end.
    server.stop();
    assert_eq!(listen.message().await["id"], "sub");
}

#[tokio::test]
async fn stateless_requests_that_do_not_ask_get_none() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    assert_eq!(client.send(CALL, call(None)).await.text(), "done");
    // What one request asked for holds for that request alone.
    levels(client.stream(1, CALL, call(Some("debug"))).await).await;
    assert_eq!(client.send(CALL, call(None)).await.text(), "done");
}

#[tokio::test]
async fn a_client_that_takes_no_stream_gets_the_result_alone() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let body = Modern::body(&json!(1), CALL, call(Some("debug")));
    let request = reqwest::Client::builder().no_proxy().build().unwrap().post(&server.url);
    let request = request
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", CALL)
        .header("mcp-name", "log_all")
        .body(body.to_string());
    assert_eq!(crate::support::Answer::of(request).await.text(), "done");
    drop(client);
}

#[tokio::test]
async fn an_unknown_level_is_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for level in ["verbose", "INFO", ""] {
        let answer = client.send(CALL, call(Some(level))).await;
        assert_eq!(answer.refusal(), (400, -32602, Some(json!(1))), "{level}");
    }
    let session = Legacy::of(&server).await;
    for params in [json!({ "level": "verbose" }), json!({ "level": 3 }), json!({})] {
        let answer = session.send("logging/setLevel", params.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{params}");
    }
}

async fn stream(session: &Legacy) -> Events {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": CALL, "params": call(None) });
    Events::of(patiently("a stream", session.post(&body).send()).await.unwrap())
}

#[tokio::test]
async fn a_session_sets_its_own_level() {
    let server = Server::streaming_with(offers).await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    for (level, heard) in [("warning", 5), ("emergency", 1), ("debug", 8)] {
        let set = one.send("logging/setLevel", json!({ "level": level })).await.result();
        assert_eq!(set, json!({}));
        assert_eq!(levels(stream(&one).await).await.len(), heard, "{level}");
    }
    one.send("logging/setLevel", json!({ "level": "alert" })).await.result();
    // Who has set none hears all that is worth hearing.
    let heard = levels(stream(&other).await).await;
    assert_eq!(heard.last().map(String::as_str), Some("emergency"), "{heard:?}");
    assert!(heard.len() >= 7, "{heard:?}");
}

#[tokio::test]
async fn setting_a_level_belongs_to_sessions() {
    let server = Server::offering(offers).await;
    let level = json!({ "level": "info" });
    let answer = Modern::of(&server).send("logging/setLevel", level).await;
    assert_eq!(answer.refusal(), (404, -32601, Some(json!(1))));
    let declared = Legacy::of(&server).await.initialized["capabilities"]["logging"].clone();
    assert_eq!(declared, json!({}));
}
