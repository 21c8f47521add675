//! Lists that arrive as a text block for each item are stored as one resource, a record each.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Json, Registry, Structured,
    query::QueryLimits,
    tools::{self, ToolOptions},
    upstream::{Settings, Upstream},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::{proposed, tool};
use crate::support::{Legacy, Modern, Server};

fn issue(n: usize) -> Value {
    json!({ "number": n, "title": format!("Issue \"{n}\""), "body": "It fails.\n".repeat(60) })
}

fn issues(n: usize) -> Vec<Value> {
    (0..n).map(issue).collect()
}

/// The blocks that FastMCP makes of a list.
fn blocks(items: &[Value]) -> Vec<ContentBlock> {
    let text = |item: &Value| match item {
        Value::String(text) => text.clone(),
        item => format!("{item:#}"),
    };
    items.iter().map(|item| ContentBlock::text(text(item))).collect()
}

/// A result whose structured content has this member.
fn with_list(member: &str, items: &[Value]) -> CallToolResult {
    let mut result = CallToolResult::success(blocks(items));
    result.structured_content = Some(json!({ member: items }));
    result
}

fn limits() -> QueryLimits {
    QueryLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        time: std::time::Duration::from_secs(60),
        ..QueryLimits::default()
    }
}

fn image() -> ContentBlock {
    ContentBlock::image(BASE64_STANDARD.encode([137, 80]), "image/png")
}

async fn server() -> Server {
    let registry = Registry::builder("lists")
        .tool(tool("blocks", |n| blocks(&issues(n))))
        .tool(tool("blocks_and_list", |n| with_list("result", &issues(n))))
        .tool(tool("blocks_of_a_member", |n| {
            let mut result = with_list("issues", &issues(n));
            result.structured_content.as_mut().unwrap()["total"] = json!(n);
            result
        }))
        .tool(tool("sentence_first", |n| {
            let mut all = blocks(&issues(n));
            all.insert(0, ContentBlock::text("Found these issues"));
            all.insert(n / 2, image());
            all
        }))
        .tool(tool("sentence_and_list", |n| {
            let mut result = with_list("result", &issues(n));
            result.content.insert(0, ContentBlock::text("Found these issues"));
            result.content.push(image());
            result
        }))
        .tool(tool("words", |n| {
            let text = |n: usize| json!(format!("Chapter {n}\n{}", "It goes, on.\n".repeat(50)));
            blocks(&(0..n).map(text).collect::<Vec<_>>())
        }))
        .tool(tool("words_and_list", |n| {
            let text = |n: usize| json!(format!("Chapter {n}\n{}", "It goes, on.\n".repeat(50)));
            with_list("result", &(0..n).map(text).collect::<Vec<_>>())
        }))
        .tool(tool("one_block", |n| {
            let mut result = with_list("result", &issues(n));
            result.content = vec![ContentBlock::text(json!(issues(n)).to_string())];
            result
        }))
        .tool(tool("text_alone", |n| Json(issues(n))))
        .tool(tool("typed", |n| Structured(issues(n))))
        .tool(tool("failing", |n| {
            let mut result = CallToolResult::error(blocks(&issues(n)));
            result.is_error = Some(true);
            result
        }))
        .with(tools::reading(ToolOptions::default()))
        .with(tools::querying(limits(), true));
    Server::of(registry.build().unwrap()).await
}

/// Either era.
enum Client {
    Modern(Modern),
    Legacy(Legacy),
}

impl Client {
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Modern(client) => client.call(tool, arguments).await.result(),
            Self::Legacy(client) => client.call(tool, arguments).await.result(),
        }
    }

    async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The number of stored resources.
    async fn stored(&self) -> usize {
        let listed = match self {
            Self::Modern(client) => client.send("resources/list", json!({})).await.result(),
            Self::Legacy(client) => client.send("resources/list", json!({})).await.result(),
        };
        listed["resources"].as_array().unwrap().len()
    }

    /// Checks that the result is one new resource with these records, whose preview is short and
    /// whose next call continues after the preview.
    async fn check(&self, what: &str, result: &Value, records: &[Value], before: usize) {
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("PREVIEW ONLY"), "{what}: {said:.300}");
        assert!(said.len() < 4_000, "{what}: {} bytes", said.len());
        assert_eq!(self.stored().await, before + 1, "{what}: stored once");

        let calls = proposed(said);
        let (tool, arguments) = &calls[0];
        assert_eq!((&**tool, &arguments["unit"]), ("read_resource", &json!("records")), "{what}");
        let sql = json!({ "from": arguments["uri"], "sql": "SELECT count(*) FROM t" });
        let counted = self.text("query_resource", sql).await;
        let n = records.len();
        assert!(counted.ends_with(&format!("\n{n}\n")), "{what}: {counted}");

        let mut read: Vec<Value> = Vec::new();
        let shown = arguments["offset"].as_u64().unwrap();
        let mut next = Some(json!({ "uri": arguments["uri"], "unit": "records", "limit": 7 }));
        while let Some(arguments) = next {
            let text = self.text("read_resource", arguments).await;
            let (head, lines) = text.split_once("\n\n").unwrap();
            read.extend(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
            next = proposed(head).pop().map(|(_, arguments)| arguments);
        }
        assert_eq!(read, records, "{what}");
        assert!(usize::try_from(shown).unwrap() < n, "{what}: {said}");
    }
}

#[tokio::test]
async fn a_list_sent_as_blocks_is_one_resource() {
    let server = server().await;
    let text = |n: usize| json!(format!("Chapter {n}\n{}", "It goes, on.\n".repeat(50)));
    let words: Vec<Value> = (0..60).map(text).collect();
    let list = issues(60);

    for client in [Client::Modern(Modern::of(&server)), Client::Legacy(Legacy::of(&server).await)] {
        for (tool, records, others) in [
            ("blocks", &list, 0),
            ("blocks_and_list", &list, 0),
            ("blocks_of_a_member", &list, 0),
            ("sentence_first", &list, 2),
            ("sentence_and_list", &list, 2),
            ("words", &words, 0),
            ("words_and_list", &words, 0),
            ("one_block", &list, 0),
            ("text_alone", &list, 0),
            ("typed", &list, 0),
            ("failing", &list, 0),
        ] {
            let before = client.stored().await;
            let result = client.call(tool, json!({ "n": 60 })).await;
            assert_eq!(result["isError"] == true, tool == "failing", "{tool}");
            client.check(tool, &result, records, before).await;

            let blocks = result["content"].as_array().unwrap();
            assert_eq!(blocks.len(), others + 2, "{tool}: preview, other blocks and link");
        }
    }
}

#[tokio::test]
async fn few_blocks_and_small_lists_are_sent_as_they_are() {
    let server = server().await;
    let client = Client::Modern(Modern::of(&server));
    for tool in ["blocks", "blocks_and_list", "sentence_and_list", "words"] {
        let result = client.call(tool, json!({ "n": 3 })).await;
        assert!(!result.to_string().contains("PREVIEW"), "{tool}: {result}");
    }
    assert_eq!(client.stored().await, 0);
}

#[tokio::test]
async fn lists_of_upstreams_are_whole_even_if_items_are_stored_while_they_arrive() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/long.mjs");
    let upstream = Settings::new("long", vec!["node".to_owned(), script.to_owned()]);
    let mut registry = Registry::builder("gateway")
        .with(tools::reading(ToolOptions::default()))
        .with(tools::querying(limits(), true));
    for provider in Upstream::all(vec![upstream], registry.tool_names()) {
        registry = registry.provider(provider);
    }
    let server = Server::of(registry.build().unwrap()).await;

    for client in [Client::Modern(Modern::of(&server)), Client::Legacy(Legacy::of(&server).await)] {
        for arguments in [
            json!({ "items": 60 }),
            json!({ "items": 60, "schema": null }),
            json!({ "items": 60, "schema": null, "first": "They are these.", "image": true }),
            json!({ "items": 60, "schema": "rows", "first": "They are these.", "image": true }),
            json!({ "items": 60, "long": 7 }),
            json!({ "items": 60, "long": 7, "schema": null }),
            json!({ "items": 60, "long": 0, "schema": null, "first": "They are these." }),
            json!({ "items": 60, "words": true }),
            json!({ "items": 60, "words": true, "long": 9 }),
            json!({ "items": 60, "words": true, "schema": null }),
        ] {
            let before = client.stored().await;
            let result = client.call("long", arguments.clone()).await;
            let said = result["content"][0]["text"].as_str().unwrap();
            assert!(said.len() < 4_000, "{arguments}: {} bytes", said.len());
            assert_eq!(client.stored().await, before + 1, "{arguments}: {said}");

            let (_, read) = &proposed(said)[0];
            let sql = json!({ "from": read["uri"], "sql": "SELECT count(*) FROM t" });
            let counted = client.text("query_resource", sql).await;
            assert!(counted.ends_with("\n60\n"), "{arguments}: {counted}");

            let last = json!({ "uri": read["uri"], "unit": "records", "offset": 59 });
            let last = client.text("read_resource", last).await;
            assert!(last.contains("text of item 59: and so on"), "{arguments}: {last:.300}");

            let long = json!({ "uri": read["uri"], "query": "🦀", "count_only": true });
            let found = client.text("search_resource", long).await;
            let has_long = !arguments["long"].is_null();
            assert_eq!(!found.starts_with("No line"), has_long, "{arguments}: {found}");
        }
    }
}
