//! `delete_resource`

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// Deletes a stored resource before it expires. Deleting one that is gone
/// already is no error.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteResource {
    /// Which resource.
    uri: String,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: DeleteResource| async move { delete(&ctx, &args.uri).await })
}

async fn delete<S>(ctx: &Context<S>, uri: &str) -> Result<String, ToolError> {
    let gone_already = if ctx.delete_resource(uri).await? { "" } else { ": it was gone already" };
    Ok(format!("Deleted {uri}{gone_already}."))
}
