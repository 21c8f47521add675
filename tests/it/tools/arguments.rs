//! Invalid arguments are refused before the handler runs.

use larder::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::support::{Answer, Ctx, Modern, Server, ToolState};

#[tokio::test]
async fn invalid_arguments_are_named_and_the_handler_does_not_run() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for (arguments, named) in [
        (json!({ "a": 1 }), "\"b\""),
        (json!({}), "\"a\""),
        (json!({ "a": "one", "b": 2 }), "a:"),
        (json!({ "a": 1.5, "b": 2 }), "a:"),
        (json!({ "a": null, "b": 2 }), "a:"),
        (json!({ "a": 1, "b": 2, "c": 3 }), "c"),
        (json!({ "a": 1e300, "b": 2 }), "a"),
    ] {
        let failure = client.call("add", arguments.clone()).await.failure();
        assert!(failure.contains(named), "{arguments}: {failure}");
        assert!(!failure.contains("1e300"), "{failure}");
    }
    assert!(!server.control.has("add", ToolState::Started));
    assert_eq!(client.call("add", json!({ "a": 1, "b": 2 })).await.text(), "1 + 2 = 3");
    assert!(server.control.has("add", ToolState::Started));
}

#[tokio::test]
async fn arguments_other_than_an_object_are_a_protocol_error() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for arguments in [json!([1, 2]), json!("a"), json!(1)] {
        let answer = client.call("add", arguments).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    }
    let answer = client.send("tools/call", json!({ "name": 7 })).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    let answer = client.send("tools/call", json!({})).await;
    assert_eq!(answer.error()["code"], -32602);
}

#[tokio::test]
async fn a_tool_without_arguments_accepts_none_or_an_empty_object() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for params in [json!({ "name": "fails" }), json!({ "name": "fails", "arguments": {} })] {
        client.send("tools/call", params).await.failure();
    }
    let extra = client.call("fails", json!({ "x": 1 })).await.failure();
    assert!(extra.contains('x'), "{extra}");
}

#[tokio::test]
async fn arguments_nested_too_deeply_are_refused() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut body = Modern::body(&json!(5), "tools/call", json!({ "name": "echo" })).to_string();
    body.truncate(body.rfind("}}").unwrap());
    // The closing braces of the body come after the nested arrays.
    let body = format!("{body},\"arguments\":{{\"text\":{deep}}}}}}}");
    let request = client
        .bare(body)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    assert_eq!(Answer::of(request).await.refusal(), (200, -32602, Some(json!(5))));
    assert_eq!(client.call("echo", json!({ "text": "on" })).await.text(), "on");
}

#[tokio::test]
async fn invalid_arguments_of_create_resource_are_named() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for (arguments, said) in [
        (json!({ "text": "x", "ttl": 0 }), "ttl must be positive"),
        (json!({ "text": "x", "ttl": -5 }), "ttl must be positive"),
        (json!({ "text": "x", "ttl": 1e9 }), "ttl must be at most"),
        (json!({ "text": "x", "ttl": 1e300 }), "ttl"),
        (json!({ "text": "x", "ttl": "1h" }), "ttl"),
        (json!({ "blob": "not base64!" }), "blob is not base64"),
        (json!({ "text": "x", "uri": "no scheme" }), "not a URI"),
        (json!({ "text": "x", "uri": "results://a b" }), "not a URI"),
        (json!({ "text": "x", "uri": format!("x:{}", "a".repeat(10_000)) }), "not a URI"),
        (json!({ "text": "x", "mime_type": "text" }), "mime_type"),
        (json!({}), "nothing to store"),
        (json!({ "text": "x", "blob": "eA==" }), "exactly one"),
        (json!({ "text": "x", "tll": 5 }), "tll"),
    ] {
        let failure = client.call("create_resource", arguments.clone()).await.failure();
        assert!(failure.contains(said), "{arguments}: {failure}");
    }
    let listed = client.list("resources/list", "resources").await;
    assert!(listed.iter().all(|r| r["uri"].as_str().unwrap().starts_with("docs://")), "{listed:?}");
}

#[tokio::test]
async fn invalid_arguments_for_reading_are_named() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:text", "text": "a\nb\n" })).await;
    client.create(json!({ "uri": "x:binary", "blob": "AAEC" })).await;
    let call = async |tool: &str, arguments: Value| client.call(tool, arguments).await.failure();
    let missing = call("read_resource", json!({ "uri": "x:none" })).await;
    assert!(missing.contains("x:none"), "{missing}");
    let bad = call("read_resource", json!({ "uri": "none" })).await;
    assert!(bad.contains("not a URI"), "{bad}");
    let zero = call("read_resource", json!({ "uri": "x:text", "limit": 0 })).await;
    assert!(zero.contains("limit"), "{zero}");
    let negative = call("read_resource", json!({ "uri": "x:text", "offset": -1 })).await;
    assert!(negative.contains("offset"), "{negative}");
    let unit = call("read_resource", json!({ "uri": "x:text", "unit": "words" })).await;
    assert!(unit.contains("unit"), "{unit}");
    let lines = call("read_resource", json!({ "uri": "x:binary" })).await;
    assert!(lines.contains("bytes"), "{lines}");
    let regex = call("search_resource", json!({ "uri": "x:text", "query": "(" })).await;
    assert!(regex.contains("query"), "{regex}");
    let binary = call("search_resource", json!({ "uri": "x:binary", "query": "a" })).await;
    assert!(binary.contains("binary"), "{binary}");
}

/// A text that says which thread read it.
struct Traced {
    thread: String,
}

impl<'de> Deserialize<'de> for Traced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?;
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        Ok(Self { thread })
    }
}

/// Returns the thread that read its arguments.
#[derive(Deserialize, JsonSchema)]
struct Reader {
    /// Any text.
    #[schemars(with = "String")]
    text: Traced,
}

#[tokio::test]
async fn large_arguments_are_read_in_the_pool_and_small_ones_at_once() {
    let server = Server::offering(|builder| {
        builder.tool(Tool::new(|_: Ctx, args: Reader| async move { args.text.thread }))
    })
    .await;
    let client = Modern::of(&server);
    for (length, in_pool) in [(10, false), (100_000, true)] {
        let thread = client.call("reader", json!({ "text": "x".repeat(length) })).await.text();
        assert_eq!(thread == "compute", in_pool, "{length}: {thread}");
    }
}
