//! `larder ls`

use std::borrow::Cow;

use clap::Args;
use larder_protocol::quote::visible;
use larder_runtime::clock::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

use super::{
    ClientError, McpClient, ServerArgs,
    look::{self, Column, Table},
    mcp_client::next_call,
    print, print_json,
};

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
    let client = McpClient::new(args.server).await?;
    let mut arguments = json!({});
    if let Some(prefix) = &args.prefix {
        arguments["prefix"] = json!(prefix);
    }

    let mut rows = RowStyle::new(args.json);
    let mut is_empty = true;
    loop {
        let output = client.ask("list_resources", &arguments).await?;
        let page: Value =
            serde_json::from_str(&output.text).map_err(|_| ClientError::unexpected_reply())?;

        let resources: Vec<_> = page["resources"].as_array().into_iter().flatten().collect();
        is_empty &= resources.is_empty();
        rows.print(&resources)?;

        let next = page["next"].as_str().map(|next| format!("next: {next}"));
        match next.and_then(|next| next_call(&next, "list_resources")) {
            Some(next) => arguments = next,
            None => break,
        }
    }

    if is_empty && look::is_for_people() {
        let told = args.prefix.map_or_else(
            || "Nothing is stored. Store a file: larder put FILE".to_owned(),
            |prefix| format!("No resource begins with {}.", visible(&prefix)),
        );
        return print(format!("{told}\n").as_bytes());
    }
    Ok(())
}

/// How the rows are printed.
enum RowStyle {
    Json,
    Tabs,
    Table(Box<Table<4>>, Timestamp),
}

impl RowStyle {
    fn new(json: bool) -> Self {
        if json {
            return Self::Json;
        }
        if !look::is_for_people() {
            return Self::Tabs;
        }

        let column = |name, is_number, style| Column { name, is_number, style };
        let table = Table::new([
            column("SIZE", true, look::size()),
            column("TYPE", false, look::dim()),
            column("EXPIRES", false, look::dim()),
            column("URI", false, look::uri()),
        ]);
        Self::Table(Box::new(table), SystemClock.now())
    }

    fn print(&mut self, resources: &[&Value]) -> Result<(), ClientError> {
        match self {
            Self::Json => resources.iter().try_for_each(|resource| print_json(resource)),
            Self::Tabs => {
                let lines = resources.iter().map(|resource| tab_separated(resource) + "\n");
                print(lines.collect::<String>().as_bytes())
            }
            Self::Table(table, now) => {
                let rows: Vec<_> = resources.iter().map(|resource| row(resource, *now)).collect();
                print(table.show(&rows).as_bytes())
            }
        }
    }
}

/// A member as a terminal shows it, which would obey control characters of a name.
fn field<'a>(resource: &'a Value, name: &str) -> Cow<'a, str> {
    match &resource[name] {
        Value::String(text) => visible(text),
        Value::Null => "-".into(),
        other => other.to_string().into(),
    }
}

fn tab_separated(resource: &Value) -> String {
    ["uri", "size", "mime_type", "expires"].map(|name| field(resource, name)).join("\t")
}

fn row(resource: &Value, now: Timestamp) -> [String; 4] {
    let size = resource["size"].as_u64();
    let expires = resource["expires"].as_str();
    [
        size.map_or_else(|| "-".to_owned(), look::bytes),
        field(resource, "mime_type").into_owned(),
        expires.map_or_else(|| "-".to_owned(), |expires| look::left(expires, now)),
        field(resource, "uri").into_owned(),
    ]
}
