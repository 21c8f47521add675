//! `read_resource`

use base64::{Engine, prelude::BASE64_STANDARD};
use larder_records::preview::words::{count, number};
use larder_store::store::{Entry, Kind, StoredResource, Window, WindowEnd};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolOptions, read_records,
    wording::{call_at_revision, revision_suffix, span},
};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// The default number of lines.
const DEFAULT_LINES: u64 = 200;
/// Reserved for the line before the content.
const HEAD_BYTES: usize = 600;

/// Reads lines, bytes or records of a stored resource. The first line of the result
/// says which part it is, what the total is, and the call that reads the next part.
/// Records are the items of a JSON list (or the members of an object), the lines of
/// NDJSON and the rows of CSV and TSV; they come one to a line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadResource {
    /// The URI of the resource.
    uri: String,
    /// How many lines (or bytes, or records) to skip. 0 by default.
    #[serde(default)]
    offset: u64,
    /// The most lines (or bytes, or records) to read. By default 200 lines or
    /// records, or as many bytes as fit into a result.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// The unit of offset and limit.
    #[serde(default)]
    unit: Unit,
    /// For records of JSON: a JSON Pointer to the list or object that has them, such
    /// as /data/items. By default the outermost list.
    #[serde(default)]
    at: Option<String>,
    /// The number of the revision; the latest by default. describe_resource
    /// lists the stored ones.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Lines,
    Bytes,
    Records,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: ReadResource| {
        let budget = options.budget(&ctx, HEAD_BYTES);
        async move { read(&ctx, &args, budget).await }
    })
}

async fn read<S>(
    ctx: &Context<S>,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let found = ctx.read_any_revision(&args.uri, args.revision).await?;
    if args.at.is_some() && args.unit != Unit::Records {
        return Err(ToolError::new("at is for records: add \"unit\":\"records\"."));
    }

    match args.unit {
        Unit::Lines => {
            let view = found.text_view(ctx.identity().owner()).await?;
            let found = view.map_or(found, |view| view.text);
            read_lines(&found, args, budget).await
        }
        Unit::Bytes => read_bytes(&found, args, budget).await,
        Unit::Records => {
            let view = found.text_view(ctx.identity().owner()).await?;
            let found = view.map_or(found, |view| view.text);
            // A pointer is about the content as it is, where that is JSON.
            let is_pointed = args.at.is_some() && found.layout().await?.is_some();
            let view =
                if is_pointed { None } else { found.record_view(ctx.identity().owner()).await? };
            let found = view.map_or(found, |view| view.records);
            let request = read_records::Request {
                at: args.at.as_deref(),
                offset: args.offset,
                limit: args.limit,
                revision: args.revision,
            };
            read_records::read(ctx.identity().owner(), &found, &request, budget).await
        }
    }
}

async fn read_lines(
    found: &StoredResource,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let entry = &found.entry;
    let limit = args.limit.unwrap_or(DEFAULT_LINES);
    let window = found.lines(args.offset, limit, budget).await?;

    let name = format!("{}{}", entry.uri, revision_suffix(args.revision));
    let total = count(entry.lines, "line");
    let (first, end) = (window.lines.start, window.lines.end);

    let head = match (&window.end, first == end) {
        (_, true) if entry.lines == 0 => format!("{name} is empty."),
        (_, true) => {
            let last = json!({ "uri": entry.uri, "offset": entry.lines.saturating_sub(limit), "limit": limit });
            format!(
                "No line at offset {} of {}: it has {total}. Next: {}.",
                number(first),
                name,
                call_at_revision("read_resource", last, args.revision)
            )
        }
        (WindowEnd::Content, _) if first == 0 => {
            format!("All of {name}: {total}. Complete.")
        }
        (WindowEnd::Content, _) => {
            format!("{} of {}. This is the end.", span("Line", first, end, &total), name)
        }
        (WindowEnd::Line(next_line), _) => {
            let next = json!({ "uri": entry.uri, "offset": next_line, "limit": limit });
            format!(
                "{} of {}. Not complete; next: {}.",
                span("Line", first, end, &total),
                name,
                call_at_revision("read_resource", next, args.revision)
            )
        }
        (WindowEnd::Byte(byte), _) => {
            let next = json!({ "uri": entry.uri, "offset": byte, "unit": "bytes" });
            format!(
                "The beginning of line {} of {total} of {}: the line is longer than one result. Not complete; next: {}.",
                number(first + 1),
                name,
                call_at_revision("read_resource", next, args.revision)
            )
        }
    };

    Ok(result_text(entry, &head, &window))
}

async fn read_bytes(
    found: &StoredResource,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let entry = &found.entry;
    let max_bytes = match entry.kind {
        Kind::Text => budget,
        // Base64 takes four characters for three bytes.
        Kind::Binary => budget / 4 * 3,
    };

    let limit = args.limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
    let window = found.bytes_from(args.offset, limit.min(max_bytes)).await?;

    let name = format!("{}{}", entry.uri, revision_suffix(args.revision));
    let total = count(entry.size, "byte");
    let encoding = match entry.kind {
        Kind::Text => "",
        Kind::Binary => " in base64",
    };
    let (first, end) = (window.range.start, window.range.end);

    let head = match window.end {
        _ if entry.size == 0 => format!("{name} is empty."),
        _ if first == end => {
            format!("No byte at offset {} of {}: it has {total}.", number(args.offset), name)
        }
        WindowEnd::Content if first == 0 => {
            format!("All of {name}{encoding}: {total}. Complete.")
        }
        WindowEnd::Content => {
            format!("{} of {}{encoding}. This is the end.", span("Byte", first, end, &total), name)
        }
        WindowEnd::Line(_) | WindowEnd::Byte(_) => {
            let mut next: Value = json!({ "uri": entry.uri, "offset": end, "unit": "bytes" });
            if let Some(limit) = args.limit {
                next["limit"] = json!(limit);
            }

            format!(
                "{} of {}{encoding}. Not complete; next: {}.",
                span("Byte", first, end, &total),
                name,
                call_at_revision("read_resource", next, args.revision)
            )
        }
    };

    Ok(result_text(entry, &head, &window))
}

/// The head, an empty line, and the content.
fn result_text(entry: &Entry, head: &str, window: &Window) -> String {
    let content = match entry.kind {
        Kind::Text => String::from_utf8_lossy(&window.bytes).into_owned(),
        Kind::Binary => BASE64_STANDARD.encode(&window.bytes),
    };

    format!("{head}\n\n{content}")
}
