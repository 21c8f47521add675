//! `larder cp` and `larder mv`

use clap::Args;
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, print_json, print_text};

#[derive(Debug, Args)]
pub(in crate::cli) struct CopyArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URI of the resource.
    uri: String,
    /// The other URI.
    to: String,
    /// Print the new URI as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn copy(args: CopyArgs) -> Result<(), ClientError> {
    let arguments = json!({ "uri": &args.to, "copy_of": &args.uri });
    call(args, "create_resource", &arguments).await
}

pub(super) async fn rename(args: CopyArgs) -> Result<(), ClientError> {
    let arguments = json!({ "uri": &args.uri, "move_to": &args.to });
    call(args, "update_resource", &arguments).await
}

async fn call(args: CopyArgs, tool: &str, arguments: &Value) -> Result<(), ClientError> {
    let output = McpClient::new(args.server).await?.ask(tool, arguments).await?;
    if args.json {
        return print_json(&json!({ "uri": args.to, "from": args.uri }));
    }

    // The rest are next calls for a model.
    let done = output.text.lines().next().unwrap_or_default();
    print_text(&format!("{done}\n"))
}
