//! `describe_resource`

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolOptions, wording::call};
use crate::{
    preview::{Preview, words::count},
    registry::{Context, Tool, ToolError},
    store::Kind,
};

/// Kept for what is told of it.
const HEAD: usize = 800;
/// How much of it is shown at most.
const PREVIEW: usize = 3_000;

/// Says what a stored resource is without reading all of it: type, size, number
/// of lines, when it was written and when it expires; the shape of JSON, the
/// columns of a table; how it begins and ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeResource {
    /// Which resource.
    uri: String,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: DescribeResource| {
        let budget = options.budget(&ctx, HEAD).min(PREVIEW);
        async move { describe(&ctx, &args.uri, budget).await }
    })
}

async fn describe<S>(ctx: &Context<S>, uri: &str, budget: usize) -> Result<String, ToolError> {
    let found = ctx.read_any(uri).await?;
    let entry = &found.entry;
    let mut text = format!("{}\nname: {}\n", entry.uri, entry.name);
    let mut line = |label: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label}: {value}");
    };
    if let Some(title) = &entry.title {
        line("title", title);
    }
    if let Some(description) = &entry.description {
        line("description", description);
    }
    line("type", &entry.mime_type);
    line("size", &count(entry.size, "byte"));
    let next = match entry.kind {
        Kind::Text => {
            line("lines", &count(entry.lines, "line"));
            let read = call("read_resource", &json!({ "uri": uri, "offset": 0, "limit": 100 }));
            let search = call("search_resource", &json!({ "uri": uri, "query": "PATTERN" }));
            format!("{read} or {search}")
        }
        Kind::Binary => {
            line("lines", &"none, it is binary");
            call("read_resource", &json!({ "uri": uri, "unit": "bytes" }))
        }
    };
    line("sha256", &entry.sha256);
    line("revision", &entry.revision);
    line("created", &entry.created);
    line("updated", &entry.updated);
    line("expires", &entry.expires);
    line("next", &next);
    Preview::of_found(&found, budget).await?.write_to(&mut text);
    Ok(text)
}
