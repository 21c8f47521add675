//! `larder rm`

use clap::Args;
use serde_json::json;

use super::{ClientError, McpClient, ServerArgs, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct RmArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URIs of the resources.
    #[arg(required_unless_present = "prefix")]
    uris: Vec<String>,
    /// Delete all of your resources whose URIs begin with this.
    #[arg(long, conflicts_with = "uris")]
    prefix: Option<String>,
}

pub(super) async fn run(args: RmArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server)?;
    for uri in &args.uris {
        let output = client.call("delete_resource", &json!({ "uri": uri })).await?;
        print(format!("{}\n", output.text).as_bytes())?;
    }

    let Some(prefix) = args.prefix else { return Ok(()) };
    loop {
        let output = client.call("delete_resource", &json!({ "prefix": prefix })).await?;
        print(format!("{}\n", output.text).as_bytes())?;
        let deleted = &output.result["structuredContent"];
        // Without a deletion, the next call would meet the same resources.
        if deleted["more"] != true || deleted["deleted"] == 0 {
            return Ok(());
        }
    }
}
