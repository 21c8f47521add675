//! Structured results from custom handlers. Larder validates each result against
//! the listed output schema before it sends it.

use larder::{prelude::*, protocol::Fault};
use model::{JsonObject, Tool, object};

/// A tool with the arguments `a` and `b`, and the output `augend`, `addend` and
/// `sum`.
fn adding(name: &'static str, description: &'static str, required: &Value) -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "a": { "type": "number", "description": "The first number to add" },
            "b": { "type": "number", "description": "The second number to add" },
        },
        "required": ["a", "b"],
    });
    let output = json!({
        "type": "object",
        "properties": {
            "augend": { "type": "number", "description": "The first number" },
            "addend": { "type": "number", "description": "The second number" },
            "sum": { "type": "number", "description": "The sum of both" },
        },
        "required": required,
    });
    let mut tool = Tool::new(name, description, object(input));
    tool.output_schema = Some(object(output).into());
    tool
}

async fn list_tools(_: Context) -> Result<Vec<Tool>, Fault> {
    let all = json!(["augend", "addend", "sum"]);
    Ok(vec![
        adding("add", "Adds two numbers.", &all),
        adding("add_misspelled", "Returns sun instead of sum, so the result is refused.", &all),
        adding("add_as_text", "Returns the sum as text, so the result is refused.", &all),
        adding("add_whatever", "Requires no member, so every object is valid.", &json!([])),
    ])
}

async fn call_tool(_: Context, name: String, arguments: JsonObject) -> Result<Json<Value>, Fault> {
    let [a, b] = ["a", "b"].map(|argument| arguments[argument].clone());
    let sum = match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => json!(a + b),
        _ => json!(a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)),
    };
    Ok(Json(match name.as_str() {
        "add" => json!({ "augend": a, "addend": b, "sum": sum }),
        "add_misspelled" => json!({ "augend": a, "addend": b, "sun": sum }),
        "add_as_text" => json!({ "augend": a, "addend": b, "sum": sum.to_string() }),
        "add_whatever" => json!({ "anything": sum }),
        name => return Err(Fault::invalid_params(format!("Unknown tool: {name}"))),
    }))
}

fn main() -> ExitCode {
    larder::server("low-level-server")
        .with(|server| server.list_tools(list_tools).call_tool(call_tool))
        .run()
}
