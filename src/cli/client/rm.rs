//! `larder rm`

use clap::Args;
use serde_json::json;

use super::{ClientError, McpClient, ServerArgs, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct RmArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URIs of the resources.
    #[arg(required = true)]
    uris: Vec<String>,
}

pub(super) async fn run(args: RmArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server)?;
    for uri in &args.uris {
        let output = client.call("delete_resource", &json!({ "uri": uri })).await?;
        print(format!("{}\n", output.text).as_bytes())?;
    }
    Ok(())
}
