//! `update_resource`

use bytes::Bytes;
use larder_oauth::Owner;
use larder_protocol::quote::shortened;
use larder_store::store::{Details, Rewrite};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{create, wording};
use crate::{
    handler::{Context, StoredFacts, Structured, ToolError},
    registry::{StoredJson, Tool},
};

/// Replaces the content of a stored resource, or adds to its end, or restores an
/// earlier revision, or moves it to another URI. Without content, changes only what you
/// give. Name, description, type and expiry stay, unless you give new ones. Give at most
/// one of text, json, blob, revision and move_to.
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
    #[schemars(with = "Option<Value>", extend("x-larder-listed" = { "type": "object" }))]
    json: Option<StoredJson>,
    /// Adds text or blob at the end of the content instead of replacing it. text
    /// begins a new line; blob is added byte for byte.
    #[serde(default)]
    append: bool,
    /// The number of a stored revision to restore, with its type. describe_resource
    /// lists them.
    #[serde(default)]
    revision: Option<u64>,
    /// A new URI, which must not be in use. Earlier revisions and sharing links are not
    /// moved: they end.
    #[serde(default)]
    move_to: Option<String>,
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
    let UpdateResource { uri, text, blob, json, append, revision, .. } = args;
    let changes_metadata = args.name.is_some()
        || args.description.is_some()
        || args.mime_type.is_some()
        || args.ttl.is_some();
    let details = create::details(args.name, args.description, args.mime_type, args.ttl)?;
    let has_content = text.is_some() || blob.is_some() || json.is_some();

    if let Some(to) = args.move_to {
        if has_content || append || revision.is_some() {
            return Err(ToolError::permanent(
                "A resource is moved with its current content: give move_to without text, json, blob, append and revision.",
            ));
        }

        return move_resource(ctx, &uri, &to, details).await;
    }

    let (update, verb) = match (revision, append, has_content) {
        (Some(_), false, false) => {
            let rewrite = Rewrite { revision, ..Rewrite::default() };
            (ctx.rewrite_resource(uri, rewrite), "Restored")
        }
        (Some(_), ..) => {
            return Err(ToolError::permanent(
                "Give revision or new content, not both; append needs new content.",
            ));
        }
        (None, true, _) => {
            let on_new_line = text.is_some();
            let appended = appended(ctx.identity().owner(), text, blob, json).await?;
            let rewrite = Rewrite { appended, revision: None, on_new_line };
            (ctx.rewrite_resource(uri, rewrite), "Appended to")
        }
        (None, false, true) => {
            let content = create::content(ctx.identity().owner(), text, blob, json).await?;
            (ctx.update_resource(uri, content), "Updated")
        }
        (None, false, false) if changes_metadata => {
            (ctx.rewrite_resource(uri, Rewrite::default()), "Updated")
        }
        (None, false, false) => {
            return Err(ToolError::permanent(
                "There is nothing to change: give one of text, json, blob, revision and move_to, or a new name, description, mime_type or ttl.",
            ));
        }
    };

    let entry = update.details(details).await?;
    Ok(wording::stored_result(&entry, verb))
}

async fn move_resource<S>(
    ctx: &Context<S>,
    uri: &str,
    to: &str,
    details: Details,
) -> Result<(Structured<StoredFacts>, CallToolResult), ToolError> {
    // A resource that is created at `to` meanwhile gets a new revision.
    match ctx.read_resource(to).await {
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {
            return Err(ToolError::permanent(format!(
                "{} is in use. Choose another URI, or delete that resource first.",
                shortened(to)
            )));
        }
    }

    let entry = ctx.rename_resource(uri, to, details).await?;
    Ok(wording::stored_result(&entry, "Moved to"))
}

/// The bytes to append.
async fn appended(
    caller: &Owner,
    text: Option<String>,
    blob: Option<String>,
    json: Option<StoredJson>,
) -> Result<Bytes, ToolError> {
    match (text, blob, json) {
        (Some(text), None, None) => Ok(text.into()),
        (None, Some(blob), None) => Ok(create::decoded(caller, blob).await?.into()),
        _ => Err(ToolError::permanent("append needs exactly one of text and blob.")),
    }
}
