//! `delete_resource`

use larder_protocol::quote::visible;
use larder_records::words::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    handler::{Context, Structured, ToolError},
    registry::Tool,
};

/// The most resources that one call deletes by a prefix.
const MAX_BY_PREFIX: usize = 1_000;

/// Deletes a stored resource, or all whose URIs begin with prefix.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteResource {
    /// The URI.
    #[serde(default)]
    uri: Option<String>,
    /// With scheme and colon.
    #[serde(default)]
    prefix: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DeletedFacts {
    /// The number of deleted resources.
    deleted: u64,
    /// Whether resources with this prefix are left: call again.
    more: bool,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: DeleteResource| async move { delete(&ctx, args).await })
}

async fn delete<S>(
    ctx: &Context<S>,
    args: DeleteResource,
) -> Result<(Structured<DeletedFacts>, String), ToolError> {
    match (args.uri, args.prefix) {
        (Some(uri), None) => {
            let existed = ctx.delete_resource(&uri).await?;
            let facts = DeletedFacts { deleted: existed.into(), more: false };
            let hint = if existed { "" } else { " (it did not exist)" };
            Ok((Structured(facts), format!("Deleted {uri}{hint}.")))
        }
        (None, Some(prefix)) => by_prefix(ctx, &prefix).await,
        _ => Err(ToolError::permanent("Give exactly one of uri and prefix.")),
    }
}

async fn by_prefix<S>(
    ctx: &Context<S>,
    prefix: &str,
) -> Result<(Structured<DeletedFacts>, String), ToolError> {
    if !prefix.contains(':') {
        let text = "A prefix needs the scheme of the URIs and its colon, such as \"notes:\".";
        return Err(ToolError::permanent(text));
    }

    let deleted = ctx.delete_resources(prefix, MAX_BY_PREFIX).await?;
    let facts = DeletedFacts { deleted: deleted.resources, more: deleted.more };

    let noun = if facts.deleted == 1 { "resource" } else { "resources" };
    let rest = if facts.more { " There are more: call delete_resource again." } else { "" };
    let text = format!(
        "Deleted {} {noun} whose URIs begin with {}.{rest}",
        number(facts.deleted),
        visible(prefix)
    );
    Ok((Structured(facts), text))
}
