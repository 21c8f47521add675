//! `larder grep`

use clap::Args;
use serde_json::json;

use super::{ClientError, McpClient, ServerArgs, mcp_client::next_call, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct GrepArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The regular expression.
    pattern: String,
    /// The URI of the resource.
    uri: String,
    /// Also print this many lines before and after each match.
    #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0)]
    context: u64,
}

pub(super) async fn run(args: GrepArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server)?;
    let mut arguments = json!({ "uri": args.uri, "query": args.pattern });
    if args.context > 0 {
        arguments["context"] = json!(args.context);
    }
    loop {
        let output = client.call("search_resource", &arguments).await?;
        let Some((head, lines)) = output.text.split_once("\n\n") else {
            return Err(ClientError::Failed(output.text));
        };
        print(lines.as_bytes())?;
        match next_call(head, "search_resource") {
            Some(next) => arguments = next,
            None => return Ok(()),
        }
    }
}
