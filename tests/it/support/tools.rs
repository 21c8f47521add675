//! The tools and resources of the test server.

use std::{sync::Arc, time::Duration};

use larder::{
    Context, Registry, Resource, Template, Tool, ToolError, Variables,
    tools::{self, ToolOptions},
};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ToolControl, ToolState, numbered_lines};

/// The context of the handlers of a test server.
pub(crate) type Ctx = Context<Arc<ToolControl>>;

/// Returns its argument.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text to return.
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

/// Reports each step that the test releases, and returns when the test releases one more.
#[derive(Deserialize, JsonSchema)]
struct Stepwise {
    /// The key under which the test controls it.
    key: String,
    /// The number of steps.
    #[serde(default)]
    steps: u32,
}

async fn stepwise(ctx: Ctx, args: Stepwise) -> String {
    let control = Arc::clone(ctx.state());
    let player = control.enter(&args.key);
    for step in 1..=args.steps {
        control.step(&args.key).await;
        ctx.progress(step).of(args.steps).message("on the way").await;
        control.record(&args.key, ToolState::Step(step));
    }
    control.step(&args.key).await;
    player.finish();
    format!("done {}", args.key)
}

/// Reports these numbers as its progress.
#[derive(Deserialize, JsonSchema)]
struct Progress {
    /// The progress values.
    values: Vec<f64>,
}

async fn progress(ctx: Ctx, args: Progress) -> &'static str {
    for value in args.values {
        ctx.progress(value).await;
    }
    "done"
}

/// Closes the stream, and goes on without it.
#[derive(Deserialize, JsonSchema)]
struct Disconnect {
    /// The key under which the test controls it.
    key: String,
}

async fn disconnect(ctx: Ctx, args: Disconnect) -> String {
    let control = Arc::clone(ctx.state());
    let player = control.enter(&args.key);
    ctx.disconnect(Duration::from_millis(50)).await;
    control.step(&args.key).await;
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

/// Stores a large result as a resource.
#[derive(Deserialize, JsonSchema)]
struct Park {
    /// The number of lines.
    lines: usize,
}

async fn park(ctx: Ctx, args: Park) -> Result<CallToolResult, ToolError> {
    let uri = format!("results://park/{}", ctx.request_id());
    let entry = ctx.create_resource(uri, numbered_lines(args.lines)).name("Parked").await?;
    let text = format!("Found {} results. Access at {entry}", args.lines);
    Ok(CallToolResult::success(vec![ContentBlock::text(text), entry.to_link()]))
}

pub(crate) fn registry(control: &Arc<ToolControl>, page_size: usize) -> Registry {
    Registry::builder("fixture")
        .version("1.2.3")
        .instructions("For tests.")
        .page_size(page_size)
        .state(Arc::clone(control))
        .tool(Tool::new(|_: Ctx, args: Echo| async move { args.text }))
        .tool(Tool::new(|ctx: Ctx, Add { a, b }: Add| async move {
            ctx.state().record("add", ToolState::Started);
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
