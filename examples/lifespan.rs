//! State that is created before the first request, dropped after the last one,
//! and shared by all handlers.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use larder::{
    clock::{Clock, SystemClock},
    prelude::*,
    protocol::Fault,
};
use model::{JsonObject, Tool, object};

/// A log of events.
struct Log {
    lines: Mutex<Vec<String>>,
}

impl Log {
    fn open() -> Self {
        let log = Self { lines: Mutex::default() };
        log.write("Server started");
        log
    }

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

async fn list_tools(ctx: Context<Log>) -> Result<Vec<Tool>, Fault> {
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
    let mut add = Tool::new("add", "Adds two numbers.", object(input));
    add.output_schema = Some(object(output).into());
    Ok(vec![add])
}

async fn call_tool(
    ctx: Context<Log>,
    _: String,
    arguments: JsonObject,
) -> Result<Json<Value>, Fault> {
    ctx.state().write("Tool called");
    let [a, b] = ["a", "b"].map(|argument| arguments[argument].as_f64().unwrap_or(0.0));
    Ok(Json(json!({ "augend": a, "addend": b, "sum": a + b })))
}

/// Returns the log as a message.
#[prompt]
fn history(ctx: &Context<Log>) -> String {
    ctx.state().all()
}

/// The whole log.
#[resource("log://all")]
fn all(ctx: &Context<Log>) -> String {
    ctx.state().all()
}

fn main() -> ExitCode {
    larder::server("low-level-server")
        .lifespan(
            || async { Ok::<_, Infallible>(Log::open()) },
            |log: Arc<Log>| async move { log.write("Server stopped") },
        )
        .with(|server| server.list_tools(list_tools).call_tool(call_tool))
        .prompt(history)
        .resource(all)
        .run()
}
