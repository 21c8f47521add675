//! `larder call`

use std::io::Read;

use clap::Args;
use serde_json::Value;

use super::{ClientError, McpClient, ServerArgs, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct CallArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The name of the tool.
    tool: String,
    /// The arguments, a JSON object; - reads them from standard input.
    #[arg(default_value = "{}")]
    arguments: String,
    /// Print the complete result as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: CallArgs) -> Result<(), ClientError> {
    let mut text = args.arguments;
    if text == "-" {
        text.clear();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| ClientError::local("standard input", &error))?;
    }

    let arguments: Value = serde_json::from_str(&text)
        .map_err(|error| ClientError::Usage(format!("The arguments are not JSON: {error}")))?;

    let output = McpClient::new(args.server)?.call(&args.tool, &arguments).await?;
    let printed = if args.json { output.result.to_string() } else { output.text };
    print(format!("{printed}\n").as_bytes())
}
