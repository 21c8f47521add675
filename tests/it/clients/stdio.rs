//! The binary over standard input and output.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use crate::support::{
    Legacy, Modern, patiently,
    process::{larder, send_signal},
};

/// `larder serve --stdio`.
struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Pipe {
    fn open() -> Self {
        let mut command = larder(&["serve", "--stdio"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), child, output }
    }

    async fn write(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
        input.flush().await.unwrap();
    }

    /// The next line. Every line must be a message.
    async fn message(&mut self) -> Value {
        let line = patiently("a line", self.output.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    async fn ask(&mut self, body: &Value) -> Value {
        self.write(&body.to_string()).await;
        self.message().await
    }

    async fn modern(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.ask(&Modern::body(&json!(id), method, params)).await
    }

    async fn legacy(&mut self, id: i64, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.ask(&body).await
    }

    /// Closes standard input; the remaining lines, and the exit code.
    async fn end(mut self) -> (Vec<String>, Option<i32>) {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(line) = patiently("the end", self.output.next_line()).await.unwrap() {
            rest.push(line);
        }
        (rest, patiently("the exit", self.child.wait()).await.unwrap().code())
    }
}

fn create(uri: &str) -> Value {
    json!({ "name": "create_resource", "arguments": { "uri": uri, "text": "x" } })
}

#[tokio::test]
async fn both_eras_work_over_stdio_and_the_server_ends_with_its_input() {
    let mut pipe = Pipe::open();
    let discovered = pipe.modern(1, "server/discover", json!({})).await;
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    let tools = pipe.modern(2, "tools/list", json!({})).await;
    assert_eq!((&tools["id"], &tools["result"]["resultType"]), (&json!(2), &json!("complete")));

    let initialized = pipe.ask(&Legacy::initialize("2025-06-18")).await;
    assert_eq!(initialized["result"]["protocolVersion"], "2025-06-18");
    pipe.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let listed = pipe.legacy(3, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"], tools["result"]["tools"]);
    assert!(listed["result"].get("resultType").is_none());
    assert_eq!(pipe.legacy(4, "ping", json!({})).await["result"], json!({}));
    assert_eq!(pipe.end().await, (Vec::new(), Some(0)));
}

#[tokio::test]
async fn a_request_before_initialize_is_answered_by_itself() {
    let mut pipe = Pipe::open();
    let listed = pipe.legacy(1, "tools/list", json!({})).await;
    assert!(listed["result"]["tools"].is_array());
    assert_eq!(pipe.end().await.1, Some(0));
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let mut pipe = Pipe::open();
    pipe.write(&Legacy::initialize("2025-11-25").to_string()).await;
    for id in 1..=20 {
        let text = "x".repeat(10_000);
        let call = json!({ "name": "create_resource", "arguments": { "text": text } });
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call });
        pipe.write(&body.to_string()).await;
    }
    let (lines, code) = pipe.end().await;
    let messages = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ids: Vec<_> = messages.filter_map(|message| message["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!((ids, code), ((0..=20).collect(), Some(0)));
}

#[tokio::test]
async fn invalid_lines_are_answered_with_errors_and_the_server_goes_on() {
    let mut pipe = Pipe::open();
    for (line, code, id) in [
        ("no json", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"nope"}"#, -32601, json!(7)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}"#, -32602, json!(8)),
    ] {
        pipe.write(line).await;
        let answer = pipe.message().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}");
    }
    // An empty line, a notification and an unexpected response have no answer.
    pipe.write("\n  \n").await;
    pipe.write(r#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#).await;
    pipe.write(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert_eq!(pipe.legacy(9, "ping", json!({})).await["id"], 9);
    assert_eq!(pipe.end().await, (Vec::new(), Some(0)));
}

#[tokio::test]
async fn several_requests_on_a_line_and_one_after_a_mark_are_answered_by_their_ids() {
    let mut pipe = Pipe::open();
    pipe.write(&format!("\u{feff}{}", Legacy::initialize("2025-11-25"))).await;
    assert_eq!(pipe.message().await["id"], 0);

    let ping = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    pipe.write(&format!("{}{} {}", ping(1), ping(2), ping(3))).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = pipe.message().await;
        assert_eq!(answer["result"], json!({}));
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);

    pipe.write(r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{"#).await;
    let answer = pipe.message().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &json!(4)));
}

#[tokio::test]
async fn a_subscription_is_cancelled_by_notification() {
    let mut pipe = Pipe::open();
    let asked = json!({ "notifications": { "resourcesListChanged": true } });
    let first = pipe.modern(1, "subscriptions/listen", asked).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    pipe.write(&Modern::body(&json!(2), "tools/call", create("x:1")).to_string()).await;
    let mut came = [pipe.message().await, pipe.message().await];
    came.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(came[0]["method"], "notifications/resources/list_changed");
    assert_eq!(came[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(came[1]["id"], 2);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    pipe.write(&cancelled.to_string()).await;
    // The cancelled subscription sends neither a response nor further notifications.
    assert_eq!(pipe.modern(3, "tools/call", create("x:2")).await["id"], 3);
    assert_eq!(pipe.modern(4, "server/discover", json!({})).await["id"], 4);
    assert_eq!(pipe.end().await, (Vec::new(), Some(0)));
}

#[tokio::test]
async fn a_legacy_session_hears_of_changes() {
    let mut pipe = Pipe::open();
    pipe.ask(&Legacy::initialize("2025-11-25")).await;
    pipe.write(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": create("x:1") })
            .to_string(),
    )
    .await;
    let mut came = [pipe.message().await, pipe.message().await];
    came.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(came[0]["method"], "notifications/resources/list_changed");
    assert_eq!(came[1]["id"], 1);
    assert_eq!(
        pipe.legacy(2, "resources/subscribe", json!({ "uri": "x:1" })).await["result"],
        json!({})
    );
    pipe.write(
        &json!({
            "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": { "name": "update_resource", "arguments": { "uri": "x:1", "text": "y" } },
        })
        .to_string(),
    )
    .await;
    let mut came = [pipe.message().await, pipe.message().await];
    came.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(came[0]["method"], "notifications/resources/updated");
    assert_eq!(pipe.end().await.1, Some(0));
}

#[tokio::test]
async fn a_signal_ends_it_well_although_the_input_is_open() {
    let mut pipe = Pipe::open();
    pipe.modern(1, "server/discover", json!({})).await;
    send_signal(&pipe.child, "-TERM").await;
    assert_eq!(patiently("the exit", pipe.child.wait()).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_requests_of_a_batch_are_answered_one_by_one() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 2, "method": "no/such" },
    ]);
    let mut pipe = Pipe::open();
    pipe.ask(&Legacy::initialize("2025-03-26")).await;
    pipe.write(&batch.to_string()).await;
    let mut answers = [pipe.message().await, pipe.message().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(1), &json!({})));
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(2), &json!(-32601)));

    let mut later = Pipe::open();
    later.ask(&Legacy::initialize("2025-06-18")).await;
    assert_eq!(later.ask(&batch).await["error"]["code"], -32600);
}
