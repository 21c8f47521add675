//! Results that are too large for an answer: they are stored (spilled), and a preview and a
//! link replace them.

mod failures;
mod items;
mod nested;
mod parts;
mod preview;
mod queries;
mod rules;
mod structured;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Builder, Context, Image, Json, Registry, Spill, Structured, Tool, ToolError,
    tools::{self, ToolOptions},
};
use rmcp::model::{ContentBlock, MetaObject, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Modern, Server, numbered_lines};

/// How much to return.
#[derive(Deserialize, JsonSchema)]
struct Much {
    /// The number of rows, lines or bytes.
    #[serde(default)]
    n: usize,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    id: usize,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Rows {
    rows: Vec<Row>,
    total: usize,
}

fn rows(n: usize) -> Rows {
    let row = |id| Row {
        id,
        name: format!("row number {id}"),
        note: (id % 3 == 0).then(|| "a third".to_owned()),
    };
    Rows { rows: (0..n).map(row).collect(), total: n }
}

fn tool<R>(name: &'static str, make: impl Fn(usize) -> R + Send + Sync + 'static) -> Tool
where
    R: larder::IntoToolResult + Send + 'static,
{
    Tool::new(move |_: Context, args: Much| std::future::ready(make(args.n))).name(name)
}

fn table(n: usize) -> String {
    let rows: Vec<_> = (0..n).map(|id| format!("{id},\"name, {id}\",{id}.5\n")).collect();
    format!("id,name,price\n{}", rows.concat())
}

fn picture(n: usize) -> Image {
    Image::png(vec![7; n])
}

fn offers(builder: Builder) -> Builder {
    let with_ui =
        MetaObject(json!({ "ui": { "resourceUri": "ui://x" } }).as_object().cloned().unwrap());
    builder
        .tool(tool("lines", numbered_lines))
        .tool(tool("table", table))
        .tool(tool("json", |n| Json(rows(n))))
        .tool(tool("rows", |n| Structured(rows(n))))
        .tool(tool("rows_and_words", |n| (Structured(rows(n)), format!("{n} rows"))))
        .tool(tool("total_and_rows", |n| (Structured(n), json!(rows(n)).to_string())))
        .tool(tool("wrapped_text", numbered_lines).structured_output(true))
        .tool(tool("picture", picture))
        .tool(tool("failing", |n| Err::<String, _>(ToolError::new(numbered_lines(n)))))
        .tool(tool("embedded", |n| {
            let log = ResourceContents::text(numbered_lines(n), "logs://today");
            vec![ContentBlock::text("The log:"), ContentBlock::resource(log)]
        }))
        .tool(tool("mixed", |n| {
            let blob = ResourceContents::blob(BASE64_STANDARD.encode(vec![1; n]), "files://bin");
            vec![
                ContentBlock::text("What was found:"),
                ContentBlock::text(table(n)),
                ContentBlock::image(BASE64_STANDARD.encode([137, 80]), "image/png"),
                ContentBlock::resource(blob),
            ]
        }))
        .tool(tool("always", |_| "short").spill(Spill::Always))
        .tool(tool("never", numbered_lines).spill(Spill::Never))
        .tool(tool("with_ui", numbered_lines).meta(with_ui))
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
}

async fn server() -> Server {
    Server::of(Registry::builder("spilling").with(offers).build().unwrap()).await
}

/// The same server with a configuration.
async fn configured(change: impl FnOnce(&mut larder::config::Config) + 'static) -> Server {
    Server::configured(|setup| {
        change(&mut setup.config);
        setup.offers = Box::new(|_, _| Registry::builder("spilling").with(offers).build().unwrap());
    })
    .await
}

/// The result of a call.
async fn call(client: &Modern, tool: &str, n: usize) -> Value {
    client.call(tool, json!({ "n": n })).await.result()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The URIs of all links in a result.
fn links(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    links.map(|link| link["uri"].as_str().unwrap()).collect()
}

/// The URI of the only stored resource of a result.
#[track_caller]
fn link(result: &Value) -> String {
    let [uri] = links(result)[..] else { panic!("{result}") };
    uri.to_owned()
}

/// The calls that a text proposes.
fn proposed(text: &str) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    for (at, _) in text.match_indices("_resource {") {
        let tool = text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap();
        let arguments = &text[at + "_resource ".len()..];
        let mut stream = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
        calls.push((format!("{tool}_resource"), stream.next().unwrap().unwrap()));
    }
    calls
}
