//! `read_resource`

use base64::{Engine, prelude::BASE64_STANDARD};
use larder_oauth::Owner;
use larder_records::words::{count, number};
use larder_store::store::{
    BLOCK_BYTES, Entry, Kind, RecordsError, StoredResource, Window, WindowEnd,
};
use rmcp::model::{CallToolResult, ContentBlock};
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
/// The most bytes that are scanned for the end of a record.
const MAX_SCANNED_BYTES: usize = 1 << 20;
/// Reserved for the line before the content.
const HEAD_BYTES: usize = 600;

/// Reads lines, bytes or records of a stored resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadResource {
    /// The URI.
    uri: String,
    /// To skip.
    #[serde(default)]
    offset: u64,
    /// To read.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Default: lines.
    #[serde(default)]
    unit: Unit,
    /// JSON Pointer to records.
    #[serde(default)]
    at: Option<String>,
    /// An earlier one.
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

/// The first records of a result, or its first lines if it has none.
pub(super) async fn head_of<S>(
    ctx: &Context<S>,
    uri: &str,
    has_records: bool,
    limit: u64,
) -> Result<CallToolResult, ToolError> {
    let args = ReadResource {
        uri: uri.to_owned(),
        offset: 0,
        limit: Some(limit),
        unit: if has_records { Unit::Records } else { Unit::Lines },
        at: None,
        revision: None,
    };

    let budget = ToolOptions::default().budget(ctx, HEAD_BYTES);
    let text = read(ctx, &args, budget).await?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text.as_str())]);
    result.structured_content = Some(text.into());
    Ok(result)
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

    let owner = ctx.identity().owner();
    match args.unit {
        Unit::Lines => {
            let (text, _slot) = found.into_text(owner).await?;
            read_lines(owner, &text, args, budget).await
        }
        Unit::Bytes => read_bytes(&found, args, budget).await,
        Unit::Records => {
            let (text, _slot) = found.into_text(owner).await?;
            // A pointer is about the content as it is, where that is JSON.
            let is_pointed = args.at.is_some() && text.layout().await?.is_some();
            let view = if is_pointed { None } else { text.record_view(owner).await? };
            let records = view.map_or(text, |view| view.records);

            let request = read_records::Request {
                at: args.at.as_deref(),
                offset: args.offset,
                limit: args.limit,
                revision: args.revision,
            };
            read_records::read(owner, &records, &request, budget).await
        }
    }
}

async fn read_lines(
    caller: &Owner,
    found: &StoredResource,
    args: &ReadResource,
    budget: usize,
) -> Result<String, ToolError> {
    let entry = &found.entry;
    let limit = args.limit.unwrap_or(DEFAULT_LINES);
    let window = found.lines(args.offset, limit, budget).await?;
    if matches!(window.end, WindowEnd::Byte(_))
        && let Some(cut) = RecordCut::find(caller, found, &window).await?
    {
        return Ok(cut.text(entry, window, args.revision));
    }

    let name = format!("{}{}", entry.uri, revision_suffix(args.revision));
    let total = count(entry.lines, "line");
    let first = window.lines.start;
    let end = window.lines.end;

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
    let first = window.range.start;
    let end = window.range.end;

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

/// The cut of a window that ends within a long line, so that records stay whole.
struct RecordCut {
    /// The first record that the window does not show whole.
    next: u64,
    /// The number of all records.
    total: u64,
    /// The offset in the content.
    offset: u64,
}

impl RecordCut {
    /// The end of the last record in the window, if there is one and another one follows.
    async fn find(
        caller: &Owner,
        found: &StoredResource,
        window: &Window,
    ) -> Result<Option<Self>, ToolError> {
        // Larger content without an index has no records.
        if found.entry.records.is_none() && found.entry.size > BLOCK_BYTES as u64 {
            return Ok(None);
        }

        let index = match found.record_index(caller, None).await {
            Ok(index) => index,
            Err(RecordsError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(None),
        };

        let Some(mark) = index.nearest_to(window.range.start).or_else(|| index.nearest(0)) else {
            return Ok(None);
        };
        let len = usize::try_from(window.range.end.saturating_sub(mark.offset)).unwrap_or(0);
        // The window begins far within a long record.
        if len > MAX_SCANNED_BYTES {
            return Ok(None);
        }
        let scanned = found.bytes_from(mark.offset, len).await?.bytes;

        let mut last = None;
        // The window ends within a value.
        let _ = index.scanner(mark).feed(&scanned, |record| last = Some(record));
        let last = last.filter(|last| last.end > window.range.start);
        let last = last.filter(|last| last.number + 1 < index.total());
        Ok(last.map(|last| Self { next: last.number + 1, total: index.total(), offset: last.end }))
    }

    fn text(&self, entry: &Entry, mut window: Window, revision: Option<u64>) -> String {
        let kept = self.offset.saturating_sub(window.range.start);
        window.bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));

        let next = json!({
            "uri": entry.uri, "unit": "records", "offset": self.next, "limit": DEFAULT_LINES,
        });
        let head = format!(
            "The beginning of line {} of {} of {}{}: the line is longer than one result, and is cut after record {} of {}. Not complete; next: {}.",
            number(window.lines.start + 1),
            count(entry.lines, "line"),
            entry.uri,
            revision_suffix(revision),
            number(self.next),
            count(self.total, "record"),
            call_at_revision("read_resource", next, revision)
        );
        result_text(entry, &head, &window)
    }
}

/// The head, an empty line, and the content.
fn result_text(entry: &Entry, head: &str, window: &Window) -> String {
    let content = match entry.kind {
        Kind::Text => String::from_utf8_lossy(&window.bytes).into_owned(),
        Kind::Binary => BASE64_STANDARD.encode(&window.bytes),
    };

    format!("{head}\n\n{content}")
}
