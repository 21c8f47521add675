//! `update_resource`

use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{create, wording};
use crate::{
    handler::{Context, StoredFacts, Structured, ToolError},
    registry::{StoredJson, Tool},
};

/// Replaces the content of a stored resource. Keeps its name, description, type
/// and expiry, unless you give new ones. Give exactly one of text, json and blob.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateResource {
    /// The URI of the resource.
    uri: String,
    /// The new text.
    #[serde(default)]
    text: Option<String>,
    /// The new binary data, in base64.
    #[serde(default)]
    blob: Option<String>,
    /// The new JSON value.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    json: Option<StoredJson>,
    /// A new short name.
    #[serde(default)]
    name: Option<String>,
    /// A new description of the content.
    #[serde(default)]
    description: Option<String>,
    /// A new media type.
    #[serde(default)]
    mime_type: Option<String>,
    /// A new time to live in seconds, from now on.
    #[serde(default)]
    ttl: Option<f64>,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: UpdateResource| async move { update(&ctx, args).await })
        .stored_argument("json")
}

async fn update<S>(
    ctx: &Context<S>,
    args: UpdateResource,
) -> Result<(Structured<StoredFacts>, CallToolResult), ToolError> {
    let content = create::content(ctx.identity().owner(), args.text, args.blob, args.json).await?;
    let details = create::details(args.name, args.description, args.mime_type, args.ttl)?;
    let entry = ctx.update_resource(args.uri, content).details(details).await?;
    Ok(wording::stored_result(&entry, "Updated"))
}
