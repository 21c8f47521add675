//! `check_upload`

use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{link_request::links, wording};
use crate::{
    content_link::UploadUse,
    handler::{Context, Structured, ToolError},
    registry::Tool,
    spill::tool_calls::{read_arguments, type_and_size},
};

/// Tells whether a file was stored by a URL of upload_url, and under which URI.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckUpload {
    /// The id that upload_url returned. It is known for a day.
    id: String,
}

/// What became of a link to upload.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// Whether the file is stored.
    state: State,
    /// What was stored, unless it was deleted or has expired since.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File>,
}

/// What became of a link to upload.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Nothing is stored yet.
    Waiting,
    /// The file was stored.
    Stored,
    /// The link has expired, and nothing was stored.
    Expired,
}

/// A stored file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct File {
    /// The URI of the resource.
    uri: String,
    /// The name.
    name: String,
    /// The media type.
    mime_type: String,
    /// The size in bytes.
    size: u64,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: CheckUpload| async move { check(&ctx, &args.id).await })
}

async fn check<S>(
    ctx: &Context<S>,
    id: &str,
) -> Result<(Structured<Checked>, CallToolResult), ToolError> {
    let (links, _) = links(ctx)?;
    let unknown = || {
        ToolError::permanent(
            "Upload not found: give the id that upload_url returned to you within the last day.",
        )
    };
    let receipt = links.receipt(id, ctx.identity().owner()).ok_or_else(unknown)?;
    let used = links.upload_use(&receipt.id).await.map_err(|error| {
        tracing::error!(%error, "the use of a link cannot be checked");
        ToolError::new("The store is not available now; try again shortly.")
    })?;
    let uri = &receipt.uri;
    let (state, file, text) = match used {
        UploadUse::Stored(_) => match ctx.resource_store().get(ctx.identity().owner(), uri).await {
            Ok(found) => {
                let entry = found.entry;
                let next = read_arguments(uri.as_str(), entry.kind, 100);
                let next = wording::call("read_resource", &next);
                let text = format!("Stored as {uri} ({}). Read it: {next}", type_and_size(&entry));
                let file = File {
                    uri: uri.to_string(),
                    name: entry.name.clone(),
                    mime_type: entry.mime_type.clone(),
                    size: entry.size,
                };
                (State::Stored, Some(file), text)
            }
            Err(error) if error.is_not_found() => {
                let text = format!("It was stored as {uri}, and is deleted or expired since.");
                (State::Stored, None, text)
            }
            Err(error) => return Err(error.into()),
        },
        _ if receipt.link_expires <= links.now() => {
            let text =
                "Nothing was stored, and the link has expired. Make a new one with upload_url.";
            (State::Expired, None, text.to_owned())
        }
        _ => {
            let text = format!(
                "Nothing is stored yet. The link works until {}. Ask again after the upload.",
                receipt.link_expires
            );
            (State::Waiting, None, text)
        }
    };
    let text = CallToolResult::success(vec![ContentBlock::text(text)]);
    Ok((Structured(Checked { state, file }), text))
}
