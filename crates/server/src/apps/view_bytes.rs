//! `view_bytes`

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::StreamExt;
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{READING_TOOL, check_scopes, result};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// The most bytes of one part.
const MAX_BYTES: usize = 256 << 10;

/// Reads bytes of a resource for the page of view_resource, in base64.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewBytes {
    /// The URI of the resource.
    uri: String,
    /// The number of the revision; the latest by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    /// How many bytes to skip. 0 by default.
    #[serde(default)]
    offset: u64,
    /// How many bytes to read; fewer at the end of the content.
    #[schemars(range(min = 1, max = MAX_BYTES))]
    length: usize,
}

#[derive(Debug, Serialize)]
struct Bytes {
    /// In base64.
    data: String,
    offset: u64,
    /// Bytes of the whole content.
    size: u64,
    revision: u64,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: ViewBytes| async move { view(&ctx, &args).await })
}

async fn view<S>(ctx: &Context<S>, args: &ViewBytes) -> Result<CallToolResult, ToolError> {
    check_scopes(ctx, READING_TOOL)?;
    let found = ctx.read_any_revision(&args.uri, args.revision).await?;

    let end = args.offset.saturating_add(args.length as u64).min(found.entry.size);
    let start = args.offset.min(end);

    let mut data = Vec::with_capacity(usize::try_from(end - start).unwrap_or(MAX_BYTES));
    let mut parts = std::pin::pin!(found.stream_range(start..end));
    while let Some(part) = parts.next().await {
        data.extend_from_slice(&part?);
    }

    let text = format!("{} of {} bytes of {}.", data.len(), found.entry.size, found.entry.uri);
    let bytes = Bytes {
        data: BASE64_STANDARD.encode(&data),
        offset: start,
        size: found.entry.size,
        revision: found.entry.revision,
    };

    result(text, &bytes)
}
