//! Regular expressions that match lines.

use std::sync::Arc;

use grep_regex::{Error, RegexMatcher, RegexMatcherBuilder};

use crate::{handler::ToolError, quote};

/// The longest query in bytes.
const MAX_QUERY_BYTES: usize = 4 << 10;
/// The largest compiled regular expression in bytes.
const MAX_COMPILED_BYTES: usize = 2 << 20;
/// The largest cache of a search in bytes.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// A compiled regular expression. Shared, because each clone of the inner value
/// has a cache of its own.
pub(super) type SharedMatcher = Arc<RegexMatcher>;

/// A matcher with ripgrep's rules: a match never crosses lines, and `^` and `$`
/// match at the ends of a line. Compiling takes some CPU time.
pub(super) fn matcher(pattern: &str, ignore_case: bool) -> Result<SharedMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).multi_line(true).case_insensitive(ignore_case);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_CACHE_BYTES);
    builder.build(pattern).map(Arc::new)
}

/// Refuses a query that is too long to be compiled.
pub(super) fn check_length(query: &str) -> Result<(), ToolError> {
    if query.len() <= MAX_QUERY_BYTES {
        return Ok(());
    }
    Err(ToolError::new(format!(
        "query has {} bytes; at most {MAX_QUERY_BYTES} are allowed. Search for a part of it.",
        query.len()
    )))
}

/// Why a regular expression is invalid, without the expression itself.
pub(super) fn reason(error: &Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    quote::shortened(last.trim_start_matches("error: ").trim_end_matches('.')).into_owned()
}

/// A pattern that matches this text literally.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
