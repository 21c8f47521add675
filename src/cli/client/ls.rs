//! `larder ls`

use clap::Args;
use larder_protocol::quote::{visible, visible_json};
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, mcp_client::next_call, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct LsArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only resources whose URI begins with this.
    prefix: Option<String>,
    /// Print each resource as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: LsArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server)?;
    let mut arguments = json!({});
    if let Some(prefix) = args.prefix {
        arguments["prefix"] = json!(prefix);
    }

    loop {
        let output = client.call("list_resources", &arguments).await?;
        let page: Value =
            serde_json::from_str(&output.text).map_err(|_| ClientError::unexpected_reply())?;

        let mut text = String::new();
        for resource in page["resources"].as_array().into_iter().flatten() {
            let row = if args.json {
                visible_json(&resource.to_string())
            } else {
                tab_separated(resource)
            };
            text += &row;
            text.push('\n');
        }

        print(text.as_bytes())?;
        let next = page["next"].as_str().map(|next| format!("next: {next}"));
        match next.and_then(|next| next_call(&next, "list_resources")) {
            Some(next) => arguments = next,
            None => return Ok(()),
        }
    }
}

fn tab_separated(resource: &Value) -> String {
    let field = |name: &str| match &resource[name] {
        // A terminal would obey control characters of a name.
        Value::String(text) => visible(text).into_owned(),
        Value::Null => "-".into(),
        other => other.to_string(),
    };
    ["uri", "size", "mime_type", "expires"].map(field).join("\t")
}
