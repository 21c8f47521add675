//! A server with a name, title, version and instructions, and a tool that reads
//! them from its context.

use larder::{Context, Json, Registry, Tool};
use serde_json::{Value, json};

/// Returns the server's name, version and instructions.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WhoAreYou;

async fn who_are_you(ctx: Context, _: WhoAreYou) -> Json<Value> {
    let registry = ctx.registry();
    Json(json!({
        "name": registry.info().name,
        "version": registry.info().version,
        "instructions": registry.instructions(),
        "request": ctx.request_id(),
    }))
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("server_name")
            .title("A server by name")
            .version("0.1.0")
            .instructions("Ask it who it is.")
            .tool(Tool::new(who_are_you))
            .build()
    })
}
