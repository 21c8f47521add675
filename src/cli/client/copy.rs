//! `larder cp` and `larder mv`

use clap::Args;
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct CopyArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URI of the resource.
    uri: String,
    /// The other URI.
    to: String,
}

pub(super) async fn copy(args: CopyArgs) -> Result<(), ClientError> {
    let arguments = json!({ "uri": args.to, "copy_of": args.uri });
    call(args.server, "create_resource", &arguments).await
}

pub(super) async fn rename(args: CopyArgs) -> Result<(), ClientError> {
    let arguments = json!({ "uri": args.uri, "move_to": args.to });
    call(args.server, "update_resource", &arguments).await
}

async fn call(server: ServerArgs, tool: &str, arguments: &Value) -> Result<(), ClientError> {
    let output = McpClient::new(server)?.call(tool, arguments).await?;
    // The rest are next calls for a model.
    let done = output.text.lines().next().unwrap_or_default();
    print(format!("{done}\n").as_bytes())
}
