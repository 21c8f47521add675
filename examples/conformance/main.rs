//! The server under test of the official conformance suite.

mod asking;
mod prompts;
mod tasks;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Builder, Context, Registry, Resource, Template, Tool, ToolError, Variables, protocol::LogLevel,
};
use rmcp::model::{ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, json};
use tokio::time::sleep;

/// A PNG file of one red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file of silence: 8 kHz, 8 bits, one channel.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";

/// No arguments. Names and descriptions are set at registration.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

pub(crate) fn tool<F, Fut, R>(name: &'static str, description: &str, run: F) -> Tool
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: larder::IntoToolResult + 'static,
{
    let handler = Arc::new(run);
    Tool::new(move |ctx: Context, _: Nothing| handler(ctx)).name(name).description(description)
}

fn content(builder: Builder) -> Builder {
    builder
        .tool(tool("test_simple_text", "Returns text", |_| async {
            "This is a simple text response for testing."
        }))
        .tool(tool("test_image_content", "Returns an image", |_| async {
            ContentBlock::image(PNG, "image/png")
        }))
        .tool(tool("test_audio_content", "Returns audio", |_| async {
            ContentBlock::audio(WAV, "audio/wav")
        }))
        .tool(tool("test_embedded_resource", "Returns an embedded resource", |_| async {
            let text = "This is an embedded resource content.";
            ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))
        }))
        .tool(tool("test_multiple_content_types", "Returns several kinds of content", |_| async {
            let json = ResourceContents::text(
                r#"{"test":"data","value":123}"#,
                "test://mixed-content-resource",
            );
            vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::resource(json.with_mime_type("application/json")),
            ]
        }))
        .tool(tool("test_error_handling", "Fails", |_| async {
            Err::<(), _>(ToolError::new("This tool intentionally returns an error for testing"))
        }))
}

fn streams(builder: Builder) -> Builder {
    builder
        .tool(tool("test_tool_with_progress", "Reports progress", |ctx| async move {
            for done in [0.0, 50.0, 100.0] {
                ctx.progress(done).of(100).message("Working").await;
                sleep(Duration::from_millis(50)).await;
            }
            "The work is done."
        }))
        .tool(tool(
            "test_reconnection",
            "Closes the connection, for the client to resume",
            |ctx| async move {
                ctx.disconnect(Duration::from_millis(100)).await;
                sleep(Duration::from_millis(100)).await;
                "The client came back for this."
            },
        ))
        .tool(tool("test_tool_with_logging", "Sends log messages", |ctx| async move {
            for step in ["started", "processing data", "completed"] {
                let text = match step {
                    "processing data" => "Tool processing data".to_owned(),
                    step => format!("Tool execution {step}"),
                };
                ctx.log(LogLevel::Info, text).await;
                sleep(Duration::from_millis(50)).await;
            }
            "The log messages say what was done."
        }))
        .tool(tool("test_logging_tool", "Sends log messages only on request", |ctx| async move {
            ctx.log(LogLevel::Info, "A log message on request.").await;
            "Done."
        }))
}

/// Has an argument that clients mirror into a header.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestCustomHeader {
    /// The mirrored value.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

fn changes(builder: Builder) -> Builder {
    builder
        .tool(tool("test_trigger_tool_change", "Adds and removes a tool", |ctx| async move {
            ctx.add_tool(tool("test_passing_tool", "Temporary", |_| async {}))?;
            ctx.remove_tool("test_passing_tool")?;
            Ok::<_, ToolError>("The list of tools has changed twice.")
        }))
        .tool(tool("test_trigger_prompt_change", "Adds and removes a prompt", |ctx| async move {
            ctx.add_prompt(prompts::temporary())?;
            ctx.remove_prompt("test_passing_prompt")?;
            Ok::<_, ToolError>("The list of prompts has changed twice.")
        }))
        .tool(Tool::new(|_: Context, args: TestCustomHeader| async move { args.value }))
}

fn schemas(builder: Builder) -> Builder {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { return builder };
    let listed =
        Tool::new(|_: Context, args: JsonObject| async move { Value::Object(args).to_string() })
            .name("json_schema_2020_12_tool")
            .description("Has a schema with many keywords")
            .input_schema(schema);
    builder.tool(listed)
}

fn resources(builder: Builder) -> Builder {
    let text = "This is the content of the static text resource.";
    let png = BASE64_STANDARD.decode(PNG).unwrap_or_default();
    builder
        .resource(Resource::text("test://static-text", text).name("Static text"))
        .resource(
            Resource::binary("test://static-binary", png)
                .name("Static binary")
                .mime_type("image/png"),
        )
        .resource(Resource::text("test://watched-resource", "Watch me.").name("Watched resource"))
        .template(
            Template::new(
                "test://template/{id}/data",
                "Template",
                |_, variables: Variables| async move {
                    let id = variables.get("id").cloned().unwrap_or_default();
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                },
            )
            .description("Data by ID")
            .mime_type("application/json"),
        )
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("larder-conformance")
            .with(content)
            .with(streams)
            .with(schemas)
            .with(changes)
            .with(asking::on_stream)
            .with(asking::round_trips)
            .with(prompts::prompts)
            .with(tasks::tasks)
            .with(resources)
            .build()
    })
}
