//! Calls of the tools over the store, for the model to copy, and the size of a resource.

use larder_records::{
    Container, Indexer, Layout, RecordIndex,
    preview::{Format, Preview},
    words::count,
};
use larder_store::store::{Entry, Kind};
use serde_json::{Value, json};

/// Lines that are longer on average are no good unit for reading, in bytes.
const LONG_LINE_BYTES: u64 = 1_000;

/// The records or lines that the next call reads.
pub(crate) const READ_AT_ONCE: u64 = 100;

/// A tool call: `read_resource {"uri":"…"}`.
pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// The arguments of `read_resource` for the first `limit` records or lines of a text, or for the
/// first bytes of binary content.
pub(crate) fn read_arguments(entry: &Entry, limit: u64) -> Value {
    arguments_from(entry, entry.records.as_deref(), 0, 0, limit)
}

/// The arguments of `read_resource` that continue after a preview whose head is that of the
/// content. They begin with the first record, or the first line, that the preview does not show
/// whole.
pub(crate) fn arguments_after(entry: &Entry, preview: &Preview, head: &[u8], limit: u64) -> Value {
    let shown = preview.head.as_ref().filter(|shown| !shown.is_whole);
    let (lines, bytes) = shown.map_or((0, 0), |shown| (shown.lines, shown.bytes));

    let small = if entry.records.is_none() { index_of(entry, preview, head) } else { None };
    let index = entry.records.as_deref().or(small.as_ref());
    let records = index.map_or(0, |index| index.records_within(&head[..bytes.min(head.len())]));
    arguments_from(entry, index, records, lines, limit)
}

/// The arguments from a record or a line on.
fn arguments_from(
    entry: &Entry,
    index: Option<&RecordIndex>,
    record: u64,
    line: u64,
    limit: u64,
) -> Value {
    if entry.kind == Kind::Binary {
        return json!({ "uri": entry.uri, "unit": "bytes" });
    }

    let index = index.filter(|index| is_read_by_records(entry, index) && record < index.total());
    if index.is_some() {
        return json!({ "uri": entry.uri, "unit": "records", "offset": record, "limit": limit });
    }

    let line = if line < entry.lines { line } else { 0 };
    json!({ "uri": entry.uri, "offset": line, "limit": limit })
}

/// Whether records are the unit in which a text is read best. The members of an object may be as
/// large as the whole, so its lines are read if they are short.
fn is_read_by_records(entry: &Entry, index: &RecordIndex) -> bool {
    match (index.layout(), index.container()) {
        (Layout::Json, Container::Object) => entry.size / entry.lines.max(1) > LONG_LINE_BYTES,
        (Layout::Json, Container::Scalar) | (Layout::Log, _) => false,
        (Layout::Json, Container::List) | (Layout::JsonLines | Layout::Rows { .. }, _) => true,
    }
}

/// The index of content that is stored without one, because it is small: its head is all of it.
fn index_of(entry: &Entry, preview: &Preview, head: &[u8]) -> Option<RecordIndex> {
    let layout = match preview.format {
        Format::Json => Layout::Json,
        Format::JsonLines => Layout::JsonLines,
        Format::Csv(dialect) => Layout::Rows(dialect),
        Format::LooseJson | Format::Text | Format::Image { .. } | Format::Binary => return None,
    };

    if head.len() as u64 != entry.size {
        return None;
    }

    let mut indexer = Indexer::new(layout);
    indexer.feed(head).ok()?;
    indexer.finish().ok().flatten()
}

/// The type and size of a resource: `text/csv, 12,345 bytes, 67 lines`.
pub(crate) fn type_and_size(entry: &Entry) -> String {
    let bytes = count(entry.size, "byte");
    match entry.kind {
        Kind::Text => format!("{}, {bytes}, {}", entry.mime_type, count(entry.lines, "line")),
        Kind::Binary => format!("{}, {bytes}, binary", entry.mime_type),
    }
}
