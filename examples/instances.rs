//! Slow tools, to test several instances that share one Redis: close the
//! connection of a call on one instance, and resume it on another.

use std::time::Duration;

use larder::{
    AskError, Context, Elicited, Registry, Tool,
    tools::{self, ToolOptions},
};
use tokio::time::sleep;

/// Counts, and reports progress.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    /// The last number.
    to: u32,
    /// The delay before each number, in milliseconds.
    every: u64,
}

/// Asks for a name, and returns a greeting.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {}

/// Counts as a task, and asks for a name before it ends.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CountOn {
    /// The last number.
    to: u32,
    /// The delay before each number, in milliseconds.
    every: u64,
}

/// The form.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

async fn count(ctx: Context, args: Count) -> String {
    for n in 1..=args.to {
        sleep(Duration::from_millis(args.every)).await;
        ctx.progress(n).of(args.to).message(format!("at {n}")).await;
    }
    format!("counted to {}", args.to)
}

async fn count_on(ctx: Context, args: CountOn) -> Result<String, AskError> {
    ctx.require_task().await;
    let CountOn { to, every } = args;
    let counted = count(ctx.clone(), Count { to, every }).await;
    Ok(match ctx.elicit::<Name>("name", "For whom?").await? {
        Elicited::Accepted(Name { name }) => format!("{counted} for {name}"),
        Elicited::Declined | Elicited::Cancelled => counted,
    })
}

async fn greet(ctx: Context, _: Greet) -> Result<String, AskError> {
    Ok(match ctx.elicit::<Name>("name", "What is your name?").await? {
        Elicited::Accepted(Name { name }) => format!("Hello, {name}."),
        Elicited::Declined | Elicited::Cancelled => "Hello, stranger.".to_owned(),
    })
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("instances")
            .tool(Tool::new(count))
            .tool(Tool::new(count_on))
            .tool(Tool::new(greet))
            .with(tools::reading(ToolOptions::default()))
            .with(tools::writing())
            .build()
    })
}
