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

/// How a query is read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Syntax {
    pub(super) ignore_case: bool,
    /// The query is the text itself.
    pub(super) literal: bool,
    /// Matches begin and end at the ends of words.
    pub(super) whole_word: bool,
}

/// A matcher with ripgrep's rules: a match never crosses lines, and `^` and `$`
/// match at the ends of a line, which may be CRLF. Compiling takes some CPU time.
pub(super) fn matcher(query: &str, syntax: Syntax) -> Result<SharedMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    // A query that names carriage returns gets them as characters.
    let names_returns = query.contains('\r') || (!syntax.literal && query.contains(r"\r"));
    builder.crlf(!names_returns).multi_line(true);
    if names_returns {
        builder.line_terminator(Some(b'\n'));
    }
    builder.case_insensitive(syntax.ignore_case).fixed_strings(syntax.literal);
    builder.word(syntax.whole_word);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_CACHE_BYTES);
    builder.build(query).map(Arc::new)
}

/// Whether no match is longer than a few times the query.
pub(super) fn has_short_matches(query: &str, syntax: Syntax) -> bool {
    syntax.literal || !query.contains(['*', '+', '{'])
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
