//! How answers speak: sizes, times, lines, next calls.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::{
    preview::words::{count, number},
    store::{Entry, Kind},
};

/// A call that the model can copy: `read_resource {"uri":"…"}`.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// The same of a revision, where one was asked for.
pub(super) fn call_at(tool: &str, mut arguments: Value, revision: Option<u64>) -> String {
    if let Some(revision) = revision {
        arguments["revision"] = revision.into();
    }
    call(tool, &arguments)
}

/// ` (revision 3)`, where one was asked for.
pub(super) fn of_revision(revision: Option<u64>) -> String {
    revision.map_or_else(String::new, |revision| format!(" (revision {revision})"))
}

/// `text/plain, 1,234 bytes, 56 lines`.
pub(super) fn size(entry: &Entry) -> String {
    let bytes = count(entry.size, "byte");
    match entry.kind {
        Kind::Text => format!("{}, {bytes}, {}", entry.mime_type, count(entry.lines, "line")),
        Kind::Binary => format!("{}, {bytes}, binary", entry.mime_type),
    }
}

/// What a writing tool answers: the URI by itself, so that nobody has to look
/// for it; then what was done, in words; then the link, for hosts that show it.
pub(super) fn stored(entry: &Entry, done: &str) -> CallToolResult {
    let next = match entry.kind {
        Kind::Text => serde_json::json!({ "uri": entry.uri, "offset": 0, "limit": 100 }),
        Kind::Binary => serde_json::json!({ "uri": entry.uri, "unit": "bytes" }),
    };
    let words = format!(
        "{done} {}: {}. It expires at {}. Next: {}.",
        entry.uri,
        size(entry),
        entry.expires,
        call("read_resource", &next)
    );
    CallToolResult::success(vec![
        ContentBlock::text(entry.uri.as_str()),
        ContentBlock::text(words),
        entry.to_link(),
    ])
}

/// A line as it is shown: all of it, or so many bytes around what was found,
/// with how much is left out.
pub(super) fn shown_of_line(line: &[u8], around: usize, most: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (start, end) = if line.len() <= most {
        (0, line.len())
    } else {
        let boundary = |mut at: usize| {
            while at > 0 && at < line.len() && line[at] & 0b1100_0000 == 0b1000_0000 {
                at -= 1;
            }
            at
        };
        let start = around.saturating_sub(most / 4).min(line.len() - most);
        (boundary(start), boundary(start + most))
    };
    let part = String::from_utf8_lossy(&line[start..end]);
    let left = |bytes: usize| format!("…[{} bytes]", number(bytes as u64));
    let before = if start > 0 { left(start) + " " } else { String::new() };
    let after =
        if end < line.len() { format!(" {}", left(line.len() - end)) } else { String::new() };
    format!("{before}{part}{after}")
}
