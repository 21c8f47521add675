//! How answers speak: sizes, times, next calls.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::store::{Entry, Kind};

/// A call that the model can copy: `read_resource {"uri":"…"}`.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// `12,345`.
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 line`, `2 lines`.
pub(super) fn count(n: u64, thing: &str) -> String {
    let plural = match thing {
        _ if n == 1 => "",
        "match" => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", number(n))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_agree_with_their_noun() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(12_345_678), "12,345,678");
        assert_eq!(count(1, "match"), "1 match");
        assert_eq!(count(2, "match"), "2 matches");
        assert_eq!(count(0, "line"), "0 lines");
    }
}
