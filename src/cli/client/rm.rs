//! `larder rm`

use clap::Args;
use serde_json::json;

use super::{ClientError, McpClient, ServerArgs, parts::Parts, print_json, print_text};

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
    /// Print what was deleted as lines of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: RmArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server).await?;
    match &args.prefix {
        Some(prefix) => delete_prefix(&client, prefix, args.json).await,
        None => delete(&client, &args.uris, args.json).await,
    }
}

async fn delete(client: &McpClient, uris: &[String], json: bool) -> Result<(), ClientError> {
    let mut missing = Vec::new();
    let mut parts = Parts::new(uris.len());
    for uri in uris {
        // The others are deleted all the same.
        match delete_one(client, uri, json).await {
            Ok(true) => {}
            Ok(false) => missing.push(uri.as_str()),
            Err(error) => parts.failed(error)?,
        }
    }

    if !missing.is_empty() {
        let told = match missing.as_slice() {
            [uri] => format!("There is no resource {uri}. List them: larder ls"),
            uris => format!("There are no resources {}. List them: larder ls", uris.join(", ")),
        };
        parts.failed(ClientError::Failed(told))?;
    }
    parts.end()
}

/// Deletes a resource, and prints that. Returns whether there was one.
async fn delete_one(client: &McpClient, uri: &str, json: bool) -> Result<bool, ClientError> {
    let output = client.ask("delete_resource", &json!({ "uri": uri })).await?;
    if output.structured()?["deleted"] == 0 {
        return Ok(false);
    }

    if json {
        print_json(&json!({ "uri": uri, "deleted": true }))?;
    } else {
        print_text(&format!("{}\n", output.text))?;
    }
    Ok(true)
}

async fn delete_prefix(client: &McpClient, prefix: &str, json: bool) -> Result<(), ClientError> {
    let mut is_first = true;
    loop {
        let output = client.ask("delete_resource", &json!({ "prefix": prefix })).await?;
        let deleted = output.structured()?;
        if is_first && deleted["deleted"] == 0 {
            return Err(ClientError::Failed(format!("No resource begins with {prefix}.")));
        }

        if json {
            print_json(&json!({ "prefix": prefix, "deleted": deleted["deleted"] }))?;
        } else {
            print_text(&format!("{}\n", output.text))?;
        }
        // A call that deletes nothing would meet the same resources again.
        if deleted["more"] != true || deleted["deleted"] == 0 {
            return Ok(());
        }
        is_first = false;
    }
}
