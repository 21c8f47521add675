//! The server that the official conformance suite asks questions of.

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

/// One red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence: 8 kHz, 8 bits, one channel.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";

/// A tool that takes no arguments; what it says stands where it is registered.
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
        .tool(tool("test_simple_text", "Answers with text", |_| async {
            "This is a simple text response for testing."
        }))
        .tool(tool("test_image_content", "Answers with an image", |_| async {
            ContentBlock::image(PNG, "image/png")
        }))
        .tool(tool("test_audio_content", "Answers with a sound", |_| async {
            ContentBlock::audio(WAV, "audio/wav")
        }))
        .tool(tool("test_embedded_resource", "Answers with a resource", |_| async {
            let text = "This is an embedded resource content.";
            ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))
        }))
        .tool(tool("test_multiple_content_types", "Answers with several kinds", |_| async {
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
        .tool(tool("test_tool_with_progress", "Tells how far it is", |ctx| async move {
            for done in [0.0, 50.0, 100.0] {
                ctx.progress(done, Some(100.0), Some("Working")).await;
                sleep(Duration::from_millis(50)).await;
            }
            "The work is done."
        }))
        .tool(tool("test_reconnection", "Lets the client come back", |ctx| async move {
            ctx.disconnect(Duration::from_millis(100)).await;
            sleep(Duration::from_millis(100)).await;
            "The client came back for this."
        }))
        .tool(tool("test_tool_with_logging", "Logs what it does", |ctx| async move {
            for step in ["started", "processing data", "completed"] {
                let text = match step {
                    "processing data" => "Tool processing data".to_owned(),
                    step => format!("Tool execution {step}"),
                };
                ctx.log(LogLevel::Info, text).await;
                sleep(Duration::from_millis(50)).await;
            }
            "What was done stands in the log."
        }))
        .tool(tool("test_logging_tool", "Logs nothing unasked", |ctx| async move {
            ctx.log(LogLevel::Info, "Somebody asked.").await;
            "Done."
        }))
}

/// Has an argument that clients mirror into a header.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestCustomHeader {
    /// Mirrored.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

fn changes(builder: Builder) -> Builder {
    builder
        .tool(tool(
            "test_trigger_tool_change",
            "Changes the list of tools for a moment",
            |ctx| async move {
                ctx.add_tool(tool("test_passing_tool", "Goes again", |_| async {}))?;
                ctx.remove_tool("test_passing_tool")?;
                Ok::<_, ToolError>("The list of tools has changed, and changed back.")
            },
        ))
        .tool(tool(
            "test_trigger_prompt_change",
            "Changes the list of prompts for a moment",
            |ctx| async move {
                ctx.add_prompt(prompts::passing())?;
                ctx.remove_prompt("test_passing_prompt")?;
                Ok::<_, ToolError>("The list of prompts has changed, and changed back.")
            },
        ))
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
            .description("Has a schema with all the keywords")
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
            .description("Data by id")
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
            .with(asking::questions)
            .with(asking::rounds)
            .with(prompts::prompts)
            .with(tasks::tasks)
            .with(resources)
            .build()
    })
}
