//! State that is created before the first request, dropped after the last one,
//! and shared by all handlers.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use larder::{
    Context, Json, Prompt, Registry, Resource,
    clock::{Clock, SystemClock},
    protocol::Fault,
};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

/// A log of events.
struct Log {
    lines: Mutex<Vec<String>>,
}

impl Log {
    fn write(&self, event: &str) {
        let line = format!("{}: {event}", SystemClock.now());
        // With the stdio transport, standard output carries protocol messages.
        eprintln!("{line}");
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn all(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}

type Ctx = Context<Arc<Log>>;

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

async fn list_tools(ctx: Ctx) -> Result<Vec<Tool>, Fault> {
    ctx.state().write("Tools listed");
    let number = json!({ "type": "number" });
    let input = json!({
        "type": "object",
        "properties": { "a": number, "b": number },
        "required": ["a", "b"],
    });
    let output = json!({
        "type": "object",
        "properties": { "augend": number, "addend": number, "sum": number },
        "required": ["augend", "addend", "sum"],
    });
    let mut add = Tool::new("add", "Adds two numbers.", object(&input));
    add.output_schema = Some(object(&output).into());
    Ok(vec![add])
}

async fn call_tool(ctx: Ctx, _: String, arguments: JsonObject) -> Result<Json<Value>, Fault> {
    ctx.state().write("Tool called");
    let [a, b] = ["a", "b"].map(|argument| arguments[argument].as_f64().unwrap_or(0.0));
    Ok(Json(json!({ "augend": a, "addend": b, "sum": a + b })))
}

/// Returns the log as a message.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct History;

fn main() -> std::process::ExitCode {
    larder::cli::run_with_lifespan(
        async |_| {
            let log = Log { lines: Mutex::default() };
            log.write("Server started");
            Ok::<_, Infallible>(log)
        },
        |_, log| {
            Registry::builder("low-level-server")
                .state(log)
                .list_tools(list_tools)
                .call_tool(call_tool)
                .prompt(Prompt::new(|ctx: Ctx, _: History| async move { ctx.state().all() }))
                .resource(Resource::new("log://all", |ctx: Ctx| async move { ctx.state().all() }))
                .build()
        },
        async |log| log.write("Server stopped"),
    )
}
