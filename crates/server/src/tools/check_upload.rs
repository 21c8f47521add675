//! `check_upload`

use larder_records::words::number;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{link_request::links, stored_file::StoredFile, wording};
use crate::{
    content_link::UploadUse,
    handler::{Context, Structured, ToolError},
    registry::Tool,
    spill::tool_calls::{read_arguments, type_and_size},
};

/// Tells whether the file of an upload_url is stored, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckUpload {
    /// From upload_url.
    id: String,
}

/// The state of an upload link, and the file.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// Whether the file is stored.
    state: State,
    /// The stored file, unless it was deleted or has expired since.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<StoredFile>,
    /// How many bytes have arrived of an upload that can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<u64>,
}

/// The state of an upload link.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// No content arrives.
    Waiting,
    /// Content arrives, or an upload in parts is not complete. Nothing is stored yet.
    Receiving,
    /// The file was stored.
    Stored,
    /// The link has expired, and nothing was stored.
    Expired,
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
        tracing::error!(%error, "whether an upload link was used cannot be checked");
        ToolError::new("The store is not available now; try again shortly.")
    })?;

    let uri = &receipt.uri;
    let owner = ctx.identity().owner();
    let store = ctx.resource_store();
    let open = match used {
        UploadUse::Stored(_) => None,
        _ => store.open_upload(owner, &receipt.id).await?,
    };

    let (state, file, received, text) = match used {
        UploadUse::Stored(_) => match store.get(owner, uri).await {
            Ok(found) => {
                let entry = found.entry;
                let next = read_arguments(&entry, 100);
                let next = wording::call("read_resource", &next);
                let text = format!("Stored as {uri} ({}). Read it: {next}", type_and_size(&entry));
                (State::Stored, Some(StoredFile::of(&entry)), None, text)
            }
            Err(error) if error.is_not_found() => {
                let text = format!("It was stored as {uri}, and is deleted or expired since.");
                (State::Stored, None, None, text)
            }
            Err(error) => return Err(error.into()),
        },
        used if used.is_receiving(links.now()) || open.is_some() => {
            let arrived = open.as_ref().map_or_else(String::new, |open| {
                let of =
                    open.size().map_or_else(String::new, |size| format!(" of {}", number(size)));
                format!(" {}{of} bytes have arrived.", number(open.offset()))
            });

            let text = format!("The file is being uploaded.{arrived} Ask again in a while.");
            (State::Receiving, None, open.map(|open| open.offset()), text)
        }
        _ if receipt.link_expires <= links.now() => {
            let text =
                "Nothing was stored, and the link has expired. Make a new one with upload_url.";
            (State::Expired, None, None, text.to_owned())
        }
        _ => {
            let text = format!(
                "Nothing is stored yet. The link works until {}. Ask again after the upload.",
                receipt.link_expires
            );
            (State::Waiting, None, None, text)
        }
    };

    let text = CallToolResult::success(vec![ContentBlock::text(text)]);
    Ok((Structured(Checked { state, file, received }), text))
}
