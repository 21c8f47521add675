//! `update_resource`

use bytes::Bytes;
use larder_oauth::Owner;
use larder_protocol::quote::shortened;
use larder_store::store::{Details, Rewrite};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    create,
    edit::{Edit, TextEdit},
    wording,
};
use crate::{
    handler::{Context, StoredFacts, Structured, ToolError},
    registry::{StoredJson, Tool},
};

/// Edits, replaces, extends, restores or moves a stored resource, or changes its details.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateResource {
    /// The URI.
    uri: String,
    /// New text.
    #[serde(default)]
    text: Option<String>,
    /// New base64.
    #[serde(default)]
    blob: Option<String>,
    /// New JSON.
    #[serde(default)]
    #[schemars(with = "Option<Value>", extend("x-larder-listed" = { "type": "object" }))]
    json: Option<StoredJson>,
    /// Add text or blob at the end.
    #[serde(default)]
    append: bool,
    /// [{old, new, all?}]: exact texts.
    #[serde(default)]
    #[schemars(extend("x-larder-listed" = { "type": "array", "items": { "type": "object" } }))]
    edits: Option<Vec<TextEdit>>,
    /// RFC 6902.
    #[serde(default)]
    #[schemars(extend("x-larder-listed" = { "type": "array", "items": { "type": "object" } }))]
    json_patch: Option<Vec<Value>>,
    /// RFC 7386.
    #[serde(default)]
    #[schemars(extend("x-larder-listed" = { "type": "object" }))]
    merge_patch: Option<Value>,
    /// The one to edit.
    #[serde(default)]
    if_revision: Option<u64>,
    /// To restore.
    #[serde(default)]
    revision: Option<u64>,
    /// Another URI.
    #[serde(default)]
    move_to: Option<String>,
    /// Short.
    #[serde(default)]
    name: Option<String>,
    /// Of the content.
    #[serde(default)]
    description: Option<String>,
    /// Media type.
    #[serde(default)]
    mime_type: Option<String>,
    /// Seconds from now.
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

    let edit =
        Edit::from_arguments(args.edits, args.json_patch, args.merge_patch, args.if_revision)?;
    if let Some(edit) = edit {
        if has_content || append || revision.is_some() || args.move_to.is_some() {
            return Err(ToolError::permanent(
                "Edits change the current content: give them without text, json, blob, append, revision and move_to.",
            ));
        }
        return edit.apply(ctx, &uri, details).await;
    }

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
                "There is nothing to change: give one of text, json, blob, edits, json_patch, merge_patch, revision and move_to, or a new name, description, mime_type or ttl.",
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
