//! Tools that send requests to the client.

use larder::{AskError, Builder, Context, Elicited, Sampling, Tool, ToolError};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::tool;

/// Runs the client's model.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestSampling {
    /// The prompt.
    prompt: String,
}

/// Asks the user to fill in a form.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestElicitation {
    /// The form's message.
    message: String,
}

/// A person.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Person {
    /// The name.
    username: String,
    /// The email address.
    email: String,
}

/// A name.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    /// The name.
    name: String,
}

/// A favourite.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Favourite {
    /// The colour.
    color: String,
}

/// A confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmed {
    /// Whether to go on.
    ok: bool,
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn shown(answer: &Elicited<JsonObject>) -> String {
    match answer {
        Elicited::Accepted(content) => {
            format!("User response: accept {}", Value::Object(content.clone()))
        }
        Elicited::Declined => "User response: decline".into(),
        Elicited::Cancelled => "User response: cancel".into(),
    }
}

async fn form(ctx: Context, schema: Value) -> Result<String, ToolError> {
    let answer = ctx.elicit_form("form", "Please fill this in.", object(schema)).await?;
    Ok(shown(&answer))
}

async fn name(ctx: &Context, key: &str) -> Result<String, AskError> {
    match ctx.elicit::<Named>(key, "What is your name?").await? {
        Elicited::Accepted(named) => Ok(named.name),
        Elicited::Declined | Elicited::Cancelled => Ok("stranger".into()),
    }
}

async fn confirmed(ctx: &Context) -> Result<&'static str, ToolError> {
    match ctx.elicit::<Confirmed>("confirm", "Go on?").await? {
        Elicited::Accepted(Confirmed { ok: true }) => Ok("state-ok"),
        _ => Ok("state-ok, but not confirmed"),
    }
}

/// Tools for requests on the call's stream.
pub(crate) fn on_stream(builder: Builder) -> Builder {
    let sampling = Tool::new(|ctx: Context, args: TestSampling| async move {
        let sampled = ctx.sample("answer", &Sampling::new(args.prompt, 100)).await?;
        Ok::<_, ToolError>(format!("LLM response: {}", sampled.text()))
    });
    let elicitation = Tool::new(|ctx: Context, args: TestElicitation| async move {
        Ok::<_, ToolError>(match ctx.elicit::<Person>("person", &args.message).await? {
            Elicited::Accepted(p) => format!("User response: accept {} {}", p.username, p.email),
            Elicited::Declined => "User response: decline".into(),
            Elicited::Cancelled => "User response: cancel".into(),
        })
    });
    builder
        .tool(sampling)
        .tool(elicitation)
        .tool(tool("test_elicitation_sep1034_defaults", "Elicits with defaults", |ctx| {
            form(
                ctx,
                json!({ "type": "object", "properties": {
                    "name": { "type": "string", "default": "John Doe" },
                    "age": { "type": "integer", "default": 30 },
                    "score": { "type": "number", "default": 95.5 },
                    "status": {
                        "type": "string",
                        "enum": ["active", "inactive", "pending"],
                        "default": "active",
                    },
                    "verified": { "type": "boolean", "default": true },
                } }),
            )
        }))
        .tool(tool("test_elicitation_sep1330_enums", "Elicits with enums", |ctx| {
            let titled = json!([
                { "const": "value1", "title": "First" },
                { "const": "value2", "title": "Second" },
                { "const": "value3", "title": "Third" },
            ]);
            form(
                ctx,
                json!({ "type": "object", "properties": {
                    "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
                    "titledSingle": { "type": "string", "oneOf": titled },
                    "legacyEnum": {
                        "type": "string",
                        "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"],
                    },
                    "untitledMulti": {
                        "type": "array",
                        "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
                    },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled } },
                } }),
            )
        }))
        .tool(tool("test_missing_capability", "Needs sampling", |ctx| async move {
            let sampled = ctx.sample("needed", &Sampling::new("Say something.", 10)).await?;
            Ok::<_, ToolError>(sampled.text())
        }))
        .tool(tool("test_streaming_elicitation", "Asks for a form", |ctx| async move {
            Ok::<_, ToolError>(format!("Hello, {}!", name(&ctx, "user_name").await?))
        }))
}

/// Tools for multi round-trip requests.
pub(crate) fn round_trips(builder: Builder) -> Builder {
    builder
        .tool(tool("test_input_required_result_elicitation", "Asks for a name", |ctx| async move {
            Ok::<_, ToolError>(format!("Hello, {}!", name(&ctx, "user_name").await?))
        }))
        .tool(tool("test_input_required_result_sampling", "Asks the model", |ctx| async move {
            let question = Sampling::new("What is the capital of France?", 100);
            Ok::<_, ToolError>(ctx.sample("capital_question", &question).await?.text())
        }))
        .tool(tool(
            "test_input_required_result_list_roots",
            "Asks for the roots",
            |ctx| async move {
                let roots = ctx.roots("client_roots").await?;
                Ok::<_, ToolError>(format!("There are {} roots.", roots.len()))
            },
        ))
        .tool(tool(
            "test_input_required_result_request_state",
            "Uses requestState",
            |ctx| async move { confirmed(&ctx).await },
        ))
        .tool(tool(
            "test_input_required_result_tampered_state",
            "Detects a changed requestState",
            |ctx| async move {
                ctx.elicit::<Confirmed>("confirm", "Go on?").await?;
                Ok::<_, ToolError>("state-ok")
            },
        ))
        .tool(tool(
            "test_input_required_result_multiple_inputs",
            "Sends three requests",
            |ctx| async move {
                let greeting = Sampling::new("Write a greeting.", 50);
                let (name, greeting, roots) = tokio::join!(
                    name(&ctx, "user_name"),
                    ctx.sample("greeting", &greeting),
                    ctx.roots("client_roots"),
                );
                let (name, greeting, roots) = (name?, greeting?.text(), roots?.len());
                Ok::<_, ToolError>(format!("{greeting} {name} with {roots} roots"))
            },
        ))
        .tool(tool("test_input_required_result_multi_round", "Asks twice", |ctx| async move {
            let first = name(&ctx, "step1").await?;
            let colour = match ctx.elicit::<Favourite>("step2", "Which colour do you like?").await?
            {
                Elicited::Accepted(favourite) => favourite.color,
                _ => "no colour".into(),
            };
            Ok::<_, ToolError>(format!("Hello, {first}, who likes {colour}!"))
        }))
        .tool(tool(
            "test_input_required_result_capabilities",
            "Asks what the client supports",
            |ctx| async move {
                if ctx.can_sample() {
                    let sampled =
                        ctx.sample("sampled", &Sampling::new("Say something.", 10)).await?;
                    return Ok::<_, ToolError>(sampled.text());
                }
                Ok(format!("Hello, {}!", name(&ctx, "user_name").await?))
            },
        ))
}
