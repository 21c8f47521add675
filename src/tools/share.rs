//! `share_resource`

use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::wording::call;
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
    store::Audience,
};

/// Lets others read a resource that you stored, by a link that this answers
/// with. They can read and search it as you do, and change nothing. The link
/// expires with the resource; delete_resource with the link takes it back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShareResource {
    /// Which resource.
    uri: String,
    /// Who may read it by the link: everyone who may use this server, or those
    /// of them who have a scope, or are in a group.
    with: With,
    /// Which scope, or which group.
    #[serde(default)]
    name: Option<String>,
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
    let (audience, whom) = match (args.with, name) {
        (With::Everyone, None) => (Audience::Everyone, "everyone who has the link".to_owned()),
        (With::Scope, Some(name)) => (Audience::Scope(name.clone()), format!("the scope {name:?}")),
        (With::Group, Some(name)) => (Audience::Group(name.clone()), format!("the group {name:?}")),
        (With::Everyone, Some(_)) => {
            return Err(ToolError::new(
                "with is \"everyone\", so leave name out; or give with \"scope\" or \"group\".",
            ));
        }
        (With::Scope | With::Group, None) => {
            return Err(ToolError::new(
                "name is missing: say which scope or group, such as {\"with\":\"group\",\"name\":\"analysts\"}.",
            ));
        }
    };
    let link = ctx.share_resource(&args.uri, audience).await?;
    let text = format!(
        "{}\nShared {} with {whom}: by this link they read it until {}. To take it back: {}.",
        link.uri,
        args.uri,
        link.expires,
        call("delete_resource", &json!({ "uri": link.uri }))
    );
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}
