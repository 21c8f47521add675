//! What the server of these tests offers.

use std::{fmt::Write, sync::Arc, time::Duration};

use larder::{
    Context, Registry, Resource, Template, Tool, ToolError, Variables,
    tools::{self, ToolOptions},
};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Beat, Stage};

/// What a handler has at hand.
pub(crate) type Ctx = Context<Arc<Stage>>;

/// Says it back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// What to say.
    text: String,
}

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The first.
    a: i64,
    /// The second.
    b: i64,
}

/// Tells of each step it may take, and ends when it may take one more.
#[derive(Deserialize, JsonSchema)]
struct Stepwise {
    /// Under which name the test follows it.
    key: String,
    /// How many steps there are.
    #[serde(default)]
    steps: u32,
}

async fn stepwise(ctx: Ctx, args: Stepwise) -> String {
    let stage = Arc::clone(ctx.state());
    let player = stage.enter(&args.key);
    for step in 1..=args.steps {
        stage.step(&args.key).await;
        ctx.progress(step.into(), Some(args.steps.into()), Some("on the way")).await;
        stage.tell(&args.key, Beat::Step(step));
    }
    stage.step(&args.key).await;
    player.finish();
    format!("done {}", args.key)
}

/// Tells of its progress in just these numbers.
#[derive(Deserialize, JsonSchema)]
struct Progress {
    /// The numbers.
    values: Vec<f64>,
}

async fn progress(ctx: Ctx, args: Progress) -> &'static str {
    for value in args.values {
        ctx.progress(value, None, None).await;
    }
    "done"
}

/// Asks the client to hang up, and goes on without it.
#[derive(Deserialize, JsonSchema)]
struct Disconnect {
    /// Under which name the test follows it.
    key: String,
}

async fn disconnect(ctx: Ctx, args: Disconnect) -> String {
    let stage = Arc::clone(ctx.state());
    let player = stage.enter(&args.key);
    ctx.disconnect(Duration::from_millis(50)).await;
    stage.step(&args.key).await;
    player.finish();
    format!("done {}", args.key)
}

/// Panics.
#[derive(Deserialize, JsonSchema)]
struct Panics;

async fn panics(_: Ctx, _: Panics) -> String {
    panic!("a secret in a panic")
}

/// Fails.
#[derive(Deserialize, JsonSchema)]
struct Fails;

async fn fails(_: Ctx, _: Fails) -> Result<String, ToolError> {
    Err(ToolError::new("Nothing to see. Look elsewhere."))
}

/// Puts a large result by.
#[derive(Deserialize, JsonSchema)]
struct Park {
    /// How many lines it has.
    lines: usize,
}

async fn park(ctx: Ctx, args: Park) -> Result<CallToolResult, ToolError> {
    let uri = format!("results://park/{}", ctx.request_id());
    let entry = ctx.create_resource(uri, numbered_lines(args.lines)).name("Parked").await?;
    let text = format!("Found {} results. Access at {entry}", args.lines);
    Ok(CallToolResult::success(vec![ContentBlock::text(text), entry.to_link()]))
}

/// Lines of about a hundred bytes, some with characters of more than one.
pub(crate) fn numbered_lines(lines: usize) -> String {
    let mut text = String::with_capacity(lines * 104);
    for n in 0..lines {
        writeln!(text, "{n:08} événement «{}» {}", n % 97, "x".repeat(n % 120)).unwrap();
    }
    text
}

pub(crate) fn registry(stage: &Arc<Stage>, page_size: usize) -> Registry {
    Registry::builder("fixture")
        .version("1.2.3")
        .instructions("For tests.")
        .page_size(page_size)
        .state(Arc::clone(stage))
        .tool(Tool::new(|_: Ctx, args: Echo| async move { args.text }))
        .tool(Tool::new(|ctx: Ctx, Add { a, b }: Add| async move {
            ctx.state().tell("add", Beat::Started);
            format!("{a} + {b} = {}", a + b)
        }))
        .tool(Tool::new(stepwise))
        .tool(Tool::new(progress))
        .tool(Tool::new(disconnect))
        .tool(Tool::new(panics))
        .tool(Tool::new(fails))
        .tool(Tool::new(park))
        .resource(Resource::text("docs://welcome", "Welcome."))
        .resource(Resource::binary("docs://binary", &b"\x00\xff\x10"[..]))
        .resource(Resource::new("docs://panics", |_: Ctx| async { panic_text() }))
        .template(Template::new(
            "logs://{service}/{date}",
            "logs",
            |_: Ctx, v: Variables| async move { format!("{} on {}", v["service"], v["date"]) },
        ))
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
        .build()
        .unwrap()
}

fn panic_text() -> String {
    panic!("a secret in a panic")
}
