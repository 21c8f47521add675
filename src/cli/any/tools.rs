//! `larder tools`

use clap::Args;
use larder_protocol::quote::visible;
use serde_json::Value;

use super::{
    server::{AnyServer, AnyServerArgs},
    shown::summary,
};
use crate::cli::client::{
    ClientError,
    look::{self, Column, Table},
    print, print_json,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct ToolsArgs {
    /// The tool to show, with its arguments.
    tool: Option<String>,
    /// Print the definition of each tool as a line of JSON.
    #[arg(long)]
    json: bool,
    // COMMAND is the last positional argument.
    #[command(flatten)]
    server: AnyServerArgs,
}

pub(super) async fn run(args: ToolsArgs) -> Result<(), ClientError> {
    let server = args.server.open(false).await?;
    let listed = list(&server, args.tool.as_deref(), args.json).await;
    server.close().await;
    listed
}

async fn list(server: &AnyServer, tool: Option<&str>, json: bool) -> Result<(), ClientError> {
    let tools = server.list("tools/list", "tools").await?;
    if let Some(name) = tool {
        let found = tools.iter().find(|tool| tool["name"] == name);
        let Some(found) = found else {
            let names = tools.iter().filter_map(|tool| tool["name"].as_str());
            let near = crate::near::did_you_mean(name, names);
            return Err(ClientError::Failed(missing(name, &near)));
        };
        return if json { print_json(found) } else { print(described(found).as_bytes()) };
    }

    if json {
        return tools.iter().try_for_each(print_json);
    }
    if tools.is_empty() && look::is_for_people() {
        return print(b"The server has no tools.\n");
    }
    print(named(&tools, "TOOL", "name").as_bytes())
}

/// There is no such tool, but there may be near ones.
pub(super) fn missing(tool: &str, near: &str) -> String {
    format!("There is no tool {tool}.{near} List them: larder tools")
}

/// Items with their names and the first sentences of their descriptions.
pub(super) fn named(items: &[Value], heading: &'static str, key: &str) -> String {
    let rows: Vec<_> = items
        .iter()
        .map(|item| {
            let name = visible(item[key].as_str().unwrap_or_default()).into_owned();
            [name, summary(&item["description"])]
        })
        .collect();

    if !look::is_for_people() {
        return rows
            .iter()
            .fold(String::new(), |text, [name, about]| text + name + "\t" + about + "\n");
    }
    let column = |name, style| Column { name, is_number: false, style };
    let mut table =
        Table::new([column(heading, look::uri()), column("DESCRIPTION", console::Style::new())]);
    table.show(&rows)
}

/// A tool with its arguments.
fn described(tool: &Value) -> String {
    let text = |value: &Value| visible(value.as_str().unwrap_or_default().trim()).into_owned();
    let mut shown = format!("{}\n", look::uri().apply_to(text(&tool["name"])));
    if let Some(description) = tool["description"].as_str() {
        for line in description.trim().lines() {
            shown += &visible(line);
            shown.push('\n');
        }
    }

    let schema = &tool["inputSchema"];
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let need = if required.contains(&name.as_str()) { ", required" } else { "" };
        let name = visible(name);
        let kind = look::dim().apply_to(format!("({}{need})", kind(property))).to_string();
        let about = summary(&property["description"]);
        shown += format!("  {} {kind} {about}", look::size().apply_to(name)).trim_end();
        shown.push('\n');
    }
    shown
}

/// The type of an argument, in a word.
fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<_> = values
            .iter()
            .map(|value| match value {
                Value::String(text) => visible(text).into_owned(),
                other => other.to_string(),
            })
            .collect();
        return values.join("|");
    }
    match &property["type"] {
        Value::String(kind) => visible(kind).into_owned(),
        Value::Array(kinds) => {
            let kinds: Vec<_> =
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect();
            visible(&kinds.join("|")).into_owned()
        }
        _ => "any".into(),
    }
}
