//! `read_resource`

use base64::{Engine, prelude::BASE64_STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolOptions,
    wording::{call_at, of_revision},
};
use crate::{
    handler::{Context, ToolError},
    preview::words::{count, number},
    registry::Tool,
    store::{Entry, Found, Kind, Window, WindowEnd},
};

/// How many lines are read where nobody says otherwise.
const DEFAULT_LINES: u64 = 200;
/// Kept for what an answer says of itself.
const HEAD: usize = 600;

/// Reads a part of a stored resource: some lines, or some bytes. The first
/// line of the answer says which part it is, of how much, and the call that
/// reads on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadResource {
    /// Which resource.
    uri: String,
    /// How many lines (or bytes) to skip. 0 by default: from the start.
    #[serde(default)]
    offset: u64,
    /// How many lines (or bytes) to read at most. 200 lines by default, or as
    /// many bytes as an answer holds.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// What offset and limit count.
    #[serde(default)]
    unit: Unit,
    /// Which revision, by its number; the latest by default. describe_resource
    /// lists those that are kept.
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
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: ReadResource| {
        let budget = options.budget(&ctx, HEAD);
        async move { read(&ctx, &args, budget).await }
    })
}

async fn read<S>(
    ctx: &Context<S>,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let found = ctx.read_any_at(&args.uri, args.revision).await?;
    match args.unit {
        Unit::Lines => read_lines(&found, args, budget).await,
        Unit::Bytes => read_bytes(&found, args, budget).await,
    }
}

async fn read_lines(
    found: &Found,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let entry = &found.entry;
    let limit = args.limit.unwrap_or(DEFAULT_LINES);
    let window = found.lines(args.offset, limit, budget).await?;
    let name = format!("{}{}", entry.uri, of_revision(args.revision));
    let total = count(entry.lines, "line");
    let (first, next) = (window.lines.start, window.lines.end);
    let head = match (&window.end, first == next) {
        (_, true) if entry.lines == 0 => format!("{name} is empty."),
        (_, true) => {
            let last = json!({ "uri": entry.uri, "offset": entry.lines.saturating_sub(limit), "limit": limit });
            format!(
                "No line at offset {} of {}: it has {total}. Next: {}.",
                number(first),
                name,
                call_at("read_resource", last, args.revision)
            )
        }
        (WindowEnd::Content, _) if first == 0 => {
            format!("All of {name}: {total}. Complete.")
        }
        (WindowEnd::Content, _) => {
            format!("{} of {}. This is the end.", span("Line", first, next, &total), name)
        }
        (WindowEnd::Line(next_line), _) => {
            let on = json!({ "uri": entry.uri, "offset": next_line, "limit": limit });
            format!(
                "{} of {}. Not complete; next: {}.",
                span("Line", first, next, &total),
                name,
                call_at("read_resource", on, args.revision)
            )
        }
        (WindowEnd::Byte(byte), _) => {
            let on = json!({ "uri": entry.uri, "offset": byte, "unit": "bytes" });
            format!(
                "The beginning of line {} of {total} of {}: the line is longer than an answer. Not complete; next: {}.",
                number(first + 1),
                name,
                call_at("read_resource", on, args.revision)
            )
        }
    };
    Ok(answer(entry, &head, &window))
}

async fn read_bytes(
    found: &Found,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let entry = &found.entry;
    let fits = match entry.kind {
        Kind::Text => budget,
        // Four characters for three bytes.
        Kind::Binary => budget / 4 * 3,
    };
    let asked = args.limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
    let window = found.bytes_from(args.offset, asked.min(fits)).await?;
    let name = format!("{}{}", entry.uri, of_revision(args.revision));
    let total = count(entry.size, "byte");
    let form = match entry.kind {
        Kind::Text => "",
        Kind::Binary => " in base64",
    };
    let (first, next) = (window.range.start, window.range.end);
    let head = match window.end {
        _ if entry.size == 0 => format!("{name} is empty."),
        _ if first == next => {
            format!("No byte at offset {} of {}: it has {total}.", number(args.offset), name)
        }
        WindowEnd::Content if first == 0 => {
            format!("All of {name}{form}: {total}. Complete.")
        }
        WindowEnd::Content => {
            format!("{} of {}{form}. This is the end.", span("Byte", first, next, &total), name)
        }
        WindowEnd::Line(_) | WindowEnd::Byte(_) => {
            let mut on: Value = json!({ "uri": entry.uri, "offset": next, "unit": "bytes" });
            if let Some(limit) = args.limit {
                on["limit"] = json!(limit);
            }
            format!(
                "{} of {}{form}. Not complete; next: {}.",
                span("Byte", first, next, &total),
                name,
                call_at("read_resource", on, args.revision)
            )
        }
    };
    Ok(answer(entry, &head, &window))
}

/// `Lines 1-10 of 1,000 lines`, counted from one as people do.
fn span(thing: &str, first: u64, next: u64, total: &str) -> String {
    if next - first == 1 {
        return format!("{thing} {} of {total}", number(next));
    }
    format!("{thing}s {}-{} of {total}", number(first + 1), number(next))
}

/// What it is, an empty line, and then nothing but content.
fn answer(entry: &Entry, head: &str, window: &Window) -> String {
    let content = match entry.kind {
        Kind::Text => String::from_utf8_lossy(&window.bytes).into_owned(),
        Kind::Binary => BASE64_STANDARD.encode(&window.bytes),
    };
    format!("{head}\n\n{content}")
}
