//! `share_resource`

use larder_protocol::quote::quoted;
use larder_store::store::{Audience, Share};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{create, wording::call};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// Makes a link by which others read a resource; delete_resource of the link revokes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShareResource {
    /// The URI.
    uri: String,
    /// Readers.
    with: With,
    /// Scope or group.
    #[serde(default)]
    name: Option<String>,
    /// Seconds.
    #[serde(default)]
    ttl: Option<f64>,
    /// Show them, too.
    #[serde(default)]
    earlier_revisions: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum With {
    Everyone,
    Scope,
    Group,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: ShareResource| async move { share(&ctx, args).await })
}

async fn share<S>(ctx: &Context<S>, args: ShareResource) -> Result<CallToolResult, ToolError> {
    let name = args.name.filter(|name| !name.is_empty());
    let (audience, readers) = match (args.with, name) {
        (With::Everyone, None) => (Audience::Everyone, "everyone who has the link".to_owned()),
        (With::Scope, Some(name)) => {
            (Audience::Scope(name.clone()), format!("the scope {}", quoted(&name)))
        }
        (With::Group, Some(name)) => {
            (Audience::Group(name.clone()), format!("the group {}", quoted(&name)))
        }
        (With::Everyone, Some(_)) => {
            return Err(ToolError::new(
                "with is \"everyone\", so leave name out; or set with to \"scope\" or \"group\".",
            ));
        }
        (With::Scope | With::Group, None) => {
            return Err(ToolError::new(
                "name is missing: give the scope or group, such as {\"with\":\"group\",\"name\":\"analysts\"}.",
            ));
        }
    };

    let ttl = args.ttl.map(create::ttl).transpose()?;
    let share = Share { audience, ttl, earlier_revisions: args.earlier_revisions };
    let link = ctx.share_resource(&args.uri, share).await?;

    let text = format!(
        "{}\nShared {} with {readers}, until {}. To revoke the link: {}.",
        link.uri,
        args.uri,
        link.expires,
        call("delete_resource", &json!({ "uri": link.uri }))
    );
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}
