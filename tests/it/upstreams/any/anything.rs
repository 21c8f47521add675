//! Whatever an upstream sends, each request ends, nothing else is affected, and the memory for
//! messages is given back.

use larder::{
    Builder, Registry,
    tools::{self, ToolOptions},
    upstream::Upstreams,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::timeout};

use super::{
    super::{SOON, text},
    Any, Way, result, upstream,
};
use crate::support::{Answer, Legacy, Server, patiently};

/// Members that methods of MCP look at, and one that none does.
const NAMES: [&str; 30] = [
    "content",
    "type",
    "text",
    "data",
    "mimeType",
    "resource",
    "uri",
    "blob",
    "structuredContent",
    "isError",
    "_meta",
    "task",
    "taskId",
    "contents",
    "messages",
    "role",
    "completion",
    "values",
    "tools",
    "name",
    "inputSchema",
    "capabilities",
    "annotations",
    "resultType",
    "inputRequests",
    "requestState",
    "method",
    "params",
    "status",
    "other",
];
const WORDS: [&str; 14] = [
    "text",
    "image",
    "resource",
    "resource_link",
    "user",
    "object",
    "file:///a",
    "larder://r/a",
    "complete",
    "input_required",
    "working",
    "elicitation/create",
    "\u{0}\u{1b}",
    "",
];

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => prop::sample::select(WORDS.to_vec()).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let members = (prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(members, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An answer with any result or error.
pub(super) fn any_answer() -> impl Strategy<Value = Vec<u8>> {
    let member = prop::sample::select(vec!["result", "result", "result", "error"]);
    (member, any_json())
        .prop_map(|(member, json)| super::response(&format!(r#""{member}":{json}"#)).into_bytes())
}

/// Bytes that were an answer, or never one.
pub(super) fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let changed = (any_answer(), changes).prop_map(|(mut bytes, changes)| {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![3 => changed, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

/// Messages in any order, of which the last one is an answer.
fn any_messages() -> impl Strategy<Value = Vec<u8>> {
    let methods = [
        "ping",
        "roots/list",
        "elicitation/create",
        "notifications/progress",
        "notifications/message",
        "notifications/cancelled",
        "notifications/resources/updated",
        "other",
        "notifications/subscriptions/acknowledged",
    ];
    let message = (prop::sample::select(methods.to_vec()), any_json(), any::<Option<u8>>());
    let message = message.prop_map(|(method, params, id)| {
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            message["id"] = json!(format!("u{id}"));
        }
        message.to_string().into_bytes()
    });
    let answer = any_json().prop_map(|json| {
        json!({ "jsonrpc": "2.0", "id": 1_i64 << 40, "result": json }).to_string().into_bytes()
    });
    let one = prop_oneof![4 => message, 1 => answer, 1 => any_bytes()];
    (prop::collection::vec(one, 0..6), any_answer()).prop_map(|(mut messages, last)| {
        messages.push(last);
        messages.join(&b"\n"[..])
    })
}

/// Whether a request was answered, by a result or by an error. Log messages of the upstream may come
/// before that.
fn is_answered(answer: Answer) -> bool {
    let message = answer.in_any_form().json();
    message["id"] == 1 && is_response(&message)
}

pub(super) fn is_response(message: &Value) -> bool {
    message.get("result").is_some() != message.get("error").is_some()
}

/// Waits for the answer to a request that the upstream answers at once. `SOON` tells an answer from one
/// that only a limit of time has brought.
async fn soon(answer: impl Future<Output = Answer>) -> Answer {
    timeout(SOON, answer).await.expect("it ends soon after the last byte")
}

impl Any {
    /// A server in front of an upstream whose messages have a MiB together.
    async fn bounded(way: Way) -> Self {
        let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
        let settings = vec![upstream(way, Vec::new()).await];
        let upstreams = Upstreams::new(settings, Vec::new(), builder.tool_names()).unwrap();
        upstreams.limit_messages(1 << 20);
        let builder = upstreams.providers().into_iter().fold(builder, Builder::provider);
        let server = Server::of(builder.build().unwrap()).await;
        Self { client: Legacy::of(&server).await, _server: server }
    }

    /// Sends each request that can bring its answer.
    async fn ask_all(&self, bytes: &[u8]) -> [Answer; 4] {
        [
            soon(self.call(bytes)).await,
            soon(self.read(bytes)).await,
            soon(self.prompt(bytes)).await,
            soon(self.complete(bytes)).await,
        ]
    }
}

pub(super) fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

fn every_request_ends(way: Way, sent: &BoxedStrategy<Vec<u8>>) {
    let runtime = Runtime::new().unwrap();
    let any = runtime.block_on(Any::bounded(way));
    let ended = runner(60).run(sent, |bytes| {
        for answer in runtime.block_on(any.ask_all(&bytes)) {
            let told = format!("{answer:?}");
            prop_assert!(is_answered(answer), "{told}");
        }
        Ok(())
    });
    ended.unwrap_or_else(|failure| panic!("{way:?}: {failure}"));

    let large = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(900_000));
    let answer = runtime.block_on(any.call(result(&large))).result();
    assert!(text(&answer).starts_with("PREVIEW ONLY"), "{way:?}: {answer}");
}

#[test]
fn any_answer_over_stdio_ends_its_request() {
    every_request_ends(Way::Stdio, &any_answer().boxed());
}

#[test]
fn any_messages_over_stdio_before_an_answer_let_it_through() {
    every_request_ends(Way::Stdio, &any_messages().boxed());
}

#[test]
fn any_body_ends_its_request() {
    every_request_ends(Way::Json, &prop_oneof![any_answer(), any_bytes()].boxed());
}

#[test]
fn any_events_end_their_request() {
    every_request_ends(Way::Events, &prop_oneof![any_messages(), any_bytes()].boxed());
}

#[test]
fn any_answer_at_the_start_or_to_a_list_lets_calls_end() {
    let runtime = Runtime::new().unwrap();
    let methods = [
        "server/discover",
        "initialize",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ];
    let case = (prop::sample::select(methods.to_vec()), any_answer());
    let ended = runner(30).run(&case, |(method, bytes)| {
        let answers = runtime.block_on(async {
            let any = Any::choosing(Way::Json, vec![(method, bytes)]).await;
            any.ask_all(result(r#"{"content":[]}"#).as_bytes()).await
        });
        for answer in answers {
            let told = format!("{answer:?}");
            prop_assert!(is_answered(answer), "{told}");
        }
        Ok(())
    });
    ended.unwrap_or_else(|failure| panic!("{failure}"));
}

#[tokio::test]
async fn a_process_that_ends_after_any_bytes_ends_its_call() {
    let any = Any::by(Way::Stdio).await;
    for bytes in [&b""[..], b"\xff\xfe", b"{\"id\":", b"null", b"[[]]", b"listening on 3000"] {
        let bytes = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes);
        let arguments = json!({ "bytes": bytes, "then": "exit" });
        let answer = patiently("an answer", any.client.call("say", arguments)).await.result();
        assert_eq!(
            text(&answer),
            "any ended (exit code 0) during say; whether it was done is unknown."
        );
    }
}
