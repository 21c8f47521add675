//! A Larder server with the tools and the resource that every peer has.

use larder::{Context, Registry, Resource, Tool};
use larder_bench::large;

/// The allocator of the `larder` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns its text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// The text.
    text: String,
}

/// Returns ten megabytes of text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large;

/// Sends progress notifications.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    /// How many notifications.
    to: u32,
}

fn main() -> std::process::ExitCode {
    let more: usize = std::env::var("TOOLS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    larder::cli::run(|_| {
        let mut builder = Registry::builder("bench")
            .tool(Tool::new(|_: Context, args: Echo| async move { args.text }))
            .tool(Tool::new(|_: Context, _: Large| async { large().to_owned() }))
            .tool(Tool::new(|ctx: Context, args: Count| async move {
                for step in 1..=args.to {
                    ctx.progress(step).of(args.to).await;
                }
                "done"
            }))
            .resource(Resource::text("bench://large", large()));
        for n in 0..more {
            let echo = Tool::new(|_: Context, args: Echo| async move { args.text });
            builder = builder.tool(echo.name(format!("echo_{n}")));
        }
        builder.build()
    })
}
