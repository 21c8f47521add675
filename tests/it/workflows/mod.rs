//! Workflows: their checks, sources of values, runs, and use as tools and tasks.

mod as_tools;
mod checks;
mod configured;
mod runs;
mod sources;
mod values;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use larder::{
    Builder, Contents, Context, Registry, Resource, ResourceError, Template, Tool, ToolError,
    Variables,
    workflow::{self, dsl::*},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::support::{Ctx, Modern, Server, ToolControl};

/// Looks a user up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Lookup {
    /// The name.
    #[serde(default)]
    name: Option<String>,
    /// How many.
    #[serde(default)]
    count: Option<i64>,
}

/// Fails twice, and then succeeds.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Flaky {}

/// Stores a resource.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Park {}

async fn lookup(_: Context, args: Lookup) -> Result<String, ToolError> {
    if args.name.as_deref() == Some("nobody") {
        return Err(ToolError::new("There is nobody of that name."));
    }
    let mut user = found_user(args.name.as_deref());
    user["count"] = json!(args.count);
    Ok(user.to_string())
}

/// What the tool finds.
fn found_user(name: Option<&str>) -> Value {
    json!({
        "id": 123,
        "name": name,
        "count": null,
        "path": "a/b?c#d",
        "up": "..",
        "list": ["One", "two", "three"],
        "api": { "endpoint_name": "v1" },
        "none": null,
    })
}

async fn park(ctx: Context, _: Park) -> Result<CallToolResult, ToolError> {
    let entry = ctx.create_resource("results://parked", "parked content").await?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(format!("At {entry}"))]);
    result.structured_content = Some(json!({ "uri": entry.uri.as_str() }));
    Ok(result)
}

/// Returns its argument.
#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct SayBack {
    /// Anything.
    value: Value,
}

/// Returns a large text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Big {}

async fn page(_: Context, variables: Variables) -> Result<String, ResourceError> {
    match variables["page"].as_str() {
        "missing" => Err(ResourceError::NotFound),
        page => Ok(format!("page {page}")),
    }
}

async fn config(_: Context, variables: Variables) -> String {
    format!("{} of {}", variables["repo"], variables["org"])
}

/// A client of a server with one workflow, and the number of calls of the flaky tool.
async fn client(workflow: SequentialWorkflow) -> (Server, Modern, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let flaky = Tool::new(move |_: Context, _: Flaky| {
        let calls = Arc::clone(&counted);
        async move {
            match calls.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => Err(ToolError::new("Not yet.")),
                _ => Ok("At last."),
            }
        }
    });
    let registry = Registry::builder("workflows")
        .with(workflow::prompt(workflow))
        .tool(Tool::new(lookup))
        .tool(Tool::new(park))
        .tool(flaky)
        .tool(Tool::new(|_: Context, args: SayBack| async move { json!(args).to_string() }))
        .tool(Tool::new(|_: Context, _: Big| async { "much ".repeat(40_000) }))
        .resource(Resource::text("docs://static-page", "The static page."))
        .resource(Resource::binary("docs://picture", b"\x89PNG".to_vec()).mime_type("image/png"))
        .resource(Resource::text("docs://huge", "x".repeat(200_000)))
        .resource(Resource::text("docs://long", "long ".repeat(18_000)))
        .resource(Resource::text("docs://medium", "medium ".repeat(4_300)))
        .resource(Resource::text("people://ana@x.com", "Ana."))
        .resource(Resource::text("docs://facts", r#"{"next":{"page":"two"}}"#))
        .resource(Resource::text("docs://pointer", "three"))
        .resource(Resource::new("docs://pair", |_: Context| async {
            Contents::with_uri("docs://pair/1", r#"{"page":"two"}"#).and("docs://pair/2", "three")
        }))
        .template(Template::new("docs://{page}", "Page", page))
        .template(Template::new("project://{org}/{repo}/config", "Config", config))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    (server, client, calls)
}

/// The result of the workflow's prompt.
async fn get(client: &Modern, arguments: Value) -> Value {
    let answer = client.send("prompts/get", json!({ "name": "w", "arguments": arguments })).await;
    answer.result()
}

fn workflow() -> SequentialWorkflow {
    SequentialWorkflow::new("w", "Do it").argument("a", "Anything", false)
}

fn user() -> WorkflowStep {
    WorkflowStep::new("look up", ToolHandle::new("lookup")).bind("user")
}

fn outcome(result: &Value) -> &Value {
    &result["_meta"]["larder/workflow"]
}

fn messages(result: &Value) -> Vec<(String, Value)> {
    let messages = result["messages"].as_array().unwrap().iter();
    messages.map(|m| (m["role"].as_str().unwrap().to_owned(), m["content"].clone())).collect()
}

fn resources(result: &Value) -> Vec<Value> {
    let contents = messages(result).into_iter().map(|(_, content)| content);
    contents.filter(|c| c["type"] == "resource").map(|c| c["resource"].clone()).collect()
}

fn texts(result: &Value) -> String {
    let contents = messages(result).into_iter();
    let texts = contents.filter_map(|(_, c)| c["text"].as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n---\n")
}

/// Waits until the test releases a step.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Play {
    /// The key under which the test controls it.
    key: String,
}

async fn play(ctx: Ctx, args: Play) -> String {
    let control = Arc::clone(ctx.state());
    let player = control.enter(&args.key);
    control.step(&args.key).await;
    player.finish();
    format!("played {}", args.key)
}

/// A workflow of two slow steps, which the test controls as `one` and `two`.
fn two_slow_steps() -> impl FnOnce(Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let step =
        |key: &str| WorkflowStep::new(key, ToolHandle::new("play")).arg("key", constant(key));
    let slow = SequentialWorkflow::new("slow", "Plays twice").step(step("one")).step(step("two"));
    move |builder| builder.tool(Tool::new(play)).with(workflow::prompt(slow.as_task()))
}
