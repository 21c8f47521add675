//! `larder describe`

use clap::Args;
use larder_protocol::quote::visible;
use serde_json::{Map, Value, json};

use super::{ClientError, McpClient, ServerArgs, look, print, print_json};

#[derive(Debug, Args)]
pub(in crate::cli) struct DescribeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URI of the resource.
    uri: String,
    /// Print the description as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: DescribeArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server).await?;
    let output = client.ask("describe_resource", &json!({ "uri": args.uri })).await?;
    let mut lines = output.text.lines();
    let uri = lines.next().unwrap_or_default();

    // The content and the next calls of a model follow an empty line.
    let facts = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(": "));
    let facts = facts.filter(|(name, _)| *name != "next");

    if args.json {
        let mut object = Map::from_iter([("uri".to_owned(), json!(uri))]);
        object.extend(facts.map(|(name, value)| (name.to_owned(), typed(name, value))));
        return print_json(&Value::Object(object));
    }

    let mut text = format!("{}\n", look::uri().apply_to(visible(uri)));
    for (name, value) in facts {
        text += &format!("{}: {}\n", look::dim().apply_to(name), visible(value));
    }
    print(text.as_bytes())
}

/// A fact as JSON: a number of bytes, lines or revisions is a number.
fn typed(name: &str, value: &str) -> Value {
    let is_number = matches!(name, "size" | "lines" | "revision");
    let digits = value.split(' ').next().unwrap_or_default().replace(',', "");
    match digits.parse::<u64>() {
        Ok(number) if is_number => json!(number),
        _ => json!(value),
    }
}
