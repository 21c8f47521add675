//! `delete_resource`

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// Deletes a stored resource before it expires. Succeeds if it no longer
/// exists.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteResource {
    /// The URI of the resource.
    uri: String,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: DeleteResource| async move { delete(&ctx, &args.uri).await })
}

async fn delete<S>(ctx: &Context<S>, uri: &str) -> Result<String, ToolError> {
    let existed = ctx.delete_resource(uri).await?;
    Ok(if existed {
        format!("Deleted {uri}.")
    } else {
        format!("Deleted {uri} (it did not exist).")
    })
}
