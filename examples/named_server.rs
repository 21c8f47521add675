//! A server with a name, title, version and instructions, and a tool that reads
//! them from its context.

use larder::prelude::*;

/// Returns the server's name, version and instructions.
#[tool]
fn who_are_you(ctx: &Context) -> Json<Value> {
    let registry = ctx.registry();
    Json(json!({
        "name": registry.info().name,
        "version": registry.info().version,
        "instructions": registry.instructions(),
        "request": ctx.request_id(),
    }))
}

fn main() -> ExitCode {
    larder::server("server_name")
        .title("A server by name")
        .version("0.1.0")
        .instructions("Ask it who it is.")
        .tool(who_are_you)
        .run()
}
