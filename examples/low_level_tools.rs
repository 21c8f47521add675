//! Custom handlers for `tools/list` and `tools/call`: the server returns its own
//! list with schemas, and runs the calls.

use larder::{prelude::*, protocol::Fault};
use model::{JsonObject, Tool, object};

async fn list_tools(_: Context) -> Result<Vec<Tool>, Fault> {
    let input = json!({
        "type": "object",
        "properties": {
            "a": { "type": "number", "description": "The first number to add" },
            "b": { "type": "number", "description": "The second number to add" },
        },
        "required": ["a", "b"],
    });
    Ok(vec![Tool::new("add", "Adds two numbers.", object(input))])
}

/// Never called for a tool that is not listed, or with arguments that do not
/// match the listed schema.
async fn call_tool(_: Context, name: String, arguments: JsonObject) -> Result<String, Fault> {
    match name.as_str() {
        "add" => {
            let [a, b] = ["a", "b"].map(|argument| arguments[argument].as_f64().unwrap_or(0.0));
            Ok(format!("{a} + {b} = {}", a + b))
        }
        name => Err(Fault::invalid_params(format!("Unknown tool: {name}"))),
    }
}

fn main() -> ExitCode {
    larder::server("low-level-server")
        .version("0.1.0")
        .with(|server| server.list_tools(list_tools).call_tool(call_tool))
        .run()
}
