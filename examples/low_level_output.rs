//! Structured results by hand: what the list promises of a tool's output is
//! held against what the tool gives, before anybody sees it.

use larder::{Context, Json, Registry, protocol::Fault};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// A tool that takes `a` and `b` and gives `augend`, `addend` and `sum`.
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
            "sum": { "type": "number", "description": "What they come to" },
        },
        "required": required,
    });
    let mut tool = Tool::new(name, description, object(&input));
    tool.output_schema = Some(object(&output).into());
    tool
}

async fn list_tools(_: Context) -> Result<Vec<Tool>, Fault> {
    let all = json!(["augend", "addend", "sum"]);
    Ok(vec![
        adding("add", "Adds two numbers.", &all),
        adding("add_misspelled", "Gives a sun for a sum, which never gets out.", &all),
        adding("add_as_text", "Gives the sum as text, which never gets out.", &all),
        adding("add_whatever", "Promises nothing in particular, so anything may come.", &json!([])),
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

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("low-level-server").list_tools(list_tools).call_tool(call_tool).build()
    })
}
