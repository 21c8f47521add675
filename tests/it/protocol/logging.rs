//! Log messages to clients: which levels are sent, and on which stream.

use std::sync::Arc;

use larder::{Builder, Tool, protocol::LogLevel};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    Answer, Ctx, Events, Legacy, Modern, Server, ToolControl, accepting, patiently,
};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Logs one message of each level.
#[derive(Deserialize, JsonSchema)]
struct LogAll {}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
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
async fn a_modern_request_gets_the_level_that_it_asks_for_on_its_own_stream() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let mut listen = client.listen("sub", json!({ "toolsListChanged": true })).await;
    for (level, heard) in [("debug", 8), ("info", 7), ("error", 4), ("emergency", 1)] {
        let levels = levels(client.stream(1, CALL, call(Some(level))).await).await;
        assert_eq!((levels.len(), levels[0].as_str()), (heard, level));
    }
    // The next message of the subscription is its end: it got no log messages.
    server.stop();
    assert_eq!(listen.message().await["id"], "sub");
}

#[tokio::test]
async fn a_modern_request_that_asks_for_no_level_gets_no_log_messages() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    assert_eq!(client.send(CALL, call(None)).await.text(), "done");
    // The level of one request does not apply to others.
    levels(client.stream(1, CALL, call(Some("debug"))).await).await;
    assert_eq!(client.send(CALL, call(None)).await.text(), "done");
}

#[tokio::test]
async fn a_client_that_accepts_no_stream_gets_the_result_only() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let request = client.request(1, CALL, call(Some("debug")));
    assert_eq!(Answer::of(accepting("application/json", request)).await.text(), "done");
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

/// A call of the tool in a session.
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
    // A session without a level gets at least the levels from `info` on.
    let heard = levels(stream(&other).await).await;
    assert_eq!(heard.last().map(String::as_str), Some("emergency"), "{heard:?}");
    assert!(heard.len() >= 7, "{heard:?}");
}

#[tokio::test]
async fn only_sessions_can_set_a_level() {
    let server = Server::offering(offers).await;
    let level = json!({ "level": "info" });
    let answer = Modern::of(&server).send("logging/setLevel", level).await;
    assert_eq!(answer.refusal(), (404, -32601, Some(json!(1))));
    let declared = Legacy::of(&server).await.initialized["capabilities"]["logging"].clone();
    assert_eq!(declared, json!({}));
}
