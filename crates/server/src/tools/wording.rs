//! The wording of results: sizes, lines, next calls.

use std::ops::Range;

use larder_records::words::number;
use larder_store::store::{Entry, MAX_URI_BYTES};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

pub(super) use crate::spill::tool_calls::call;
use crate::{
    handler::{StoredFacts, Structured, ToolError},
    spill::tool_calls::{read_arguments, type_and_size},
};

/// These arguments with a revision, if the request names one.
pub(super) fn at_revision(mut arguments: Value, revision: Option<u64>) -> Value {
    if let Some(revision) = revision {
        arguments["revision"] = revision.into();
    }
    arguments
}

/// [`call`] with a revision, if the request names one.
pub(super) fn call_at_revision(tool: &str, arguments: Value, revision: Option<u64>) -> String {
    call(tool, &at_revision(arguments, revision))
}

/// Refuses a prefix that is longer than a URI: it would come back in the next call.
pub(super) fn check_prefix(prefix: Option<&str>) -> Result<(), ToolError> {
    let bytes = prefix.map_or(0, str::len);
    if bytes <= MAX_URI_BYTES {
        return Ok(());
    }

    Err(ToolError::new(format!(
        "prefix has {bytes} bytes; a URI has at most {MAX_URI_BYTES}. Give the beginning of a URI, such as results://."
    )))
}

/// ` (revision 3)`, if the request names a revision.
pub(super) fn revision_suffix(revision: Option<u64>) -> String {
    revision.map_or_else(String::new, |revision| format!(" (revision {revision})"))
}

/// `Lines 1-10 of 1,000 lines`, for a range that counts from 0 and excludes
/// `end`.
pub(super) fn span(unit: &str, first: u64, end: u64, total: &str) -> String {
    if end - first == 1 {
        return format!("{unit} {} of {total}", number(end));
    }
    format!("{unit}s {}-{} of {total}", number(first + 1), number(end))
}

/// The result of a tool that stores: the URI alone, for programs that read text; a sentence
/// for the model; the link, for hosts that show links; and all of it as a value.
pub(super) fn stored_result(
    entry: &Entry,
    verb: &str,
) -> (Structured<StoredFacts>, CallToolResult) {
    let next = read_arguments(entry, 100);
    let text = format!(
        "{verb} {}: {}. It expires at {}. Next: {}.",
        entry.uri,
        type_and_size(entry),
        entry.expires,
        call("read_resource", &next)
    );

    let content = CallToolResult::success(vec![
        ContentBlock::text(entry.uri.as_str()),
        ContentBlock::text(text),
        entry.to_link(),
    ]);
    (Structured(StoredFacts::new(entry)), content)
}

/// A line without its line break; if it is longer than `max_bytes`, the part
/// around `match_offset`, with the numbers of bytes left out on each side.
pub(super) fn line_excerpt(line: &[u8], match_offset: usize, max_bytes: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);

    let (start, end) = if line.len() <= max_bytes {
        (0, line.len())
    } else {
        // UTF-8 continuation bytes begin with the bits 10.
        let char_boundary = |mut offset: usize| {
            while offset > 0 && offset < line.len() && line[offset] & 0b1100_0000 == 0b1000_0000 {
                offset -= 1;
            }
            offset
        };

        let start = match_offset.saturating_sub(max_bytes / 4).min(line.len() - max_bytes);
        (char_boundary(start), char_boundary(start + max_bytes))
    };

    let part = String::from_utf8_lossy(&line[start..end]);
    let omitted = |bytes: usize| format!("…[{} bytes]", number(bytes as u64));
    let before = if start > 0 { omitted(start) + " " } else { String::new() };
    let after =
        if end < line.len() { format!(" {}", omitted(line.len() - end)) } else { String::new() };
    format!("{before}{part}{after}")
}

/// The part of a long line around a match, which is shown whole if it fits.
pub(super) fn match_excerpt(
    text: &[u8],
    found: Range<usize>,
    around: usize,
    max_bytes: usize,
) -> String {
    let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let char_start = |mut offset: usize| {
        while text.get(offset).is_some_and(is_inside) {
            offset += 1;
        }
        offset
    };

    let start = char_start(found.start.saturating_sub(around));
    let match_end = found.end.min(found.start + max_bytes);
    let end = char_start((match_end + around).min(text.len()));

    let part = String::from_utf8_lossy(&text[start..end.max(start)]);
    let mark = |cut: bool| if cut { "…" } else { "" };
    format!("{}{part}{}", mark(start > 0), mark(end < text.len()))
}
