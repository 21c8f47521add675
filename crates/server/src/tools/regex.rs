//! Regular expressions that match lines.

mod stoppable;
mod weight;

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use grep_matcher::Matcher;
use grep_regex::{Error, RegexMatcher, RegexMatcherBuilder};
use larder_protocol::quote;
use larder_runtime::compute::Stop;

use self::{stoppable::StoppableRegex, weight::weight};
use crate::handler::ToolError;

/// The longest query in bytes.
const MAX_QUERY_BYTES: usize = 4 << 10;
/// The largest compiled regular expression in bytes.
const MAX_COMPILED_BYTES: usize = 2 << 20;
/// The largest cache of a search in bytes.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// The largest product of a text's length and an expression's weight that is searched without a look at
/// the stop: a second at worst.
const MAX_UNSTOPPABLE: u64 = 100_000_000;

/// A compiled regular expression. Shared, because each clone of the inner value
/// has a cache of its own.
pub(super) type SharedMatcher = Arc<LineMatcher>;

/// A regular expression with ripgrep's rules: a match never crosses lines, and `^` and `$` match at
/// the ends of a line, which may be CRLF.
#[derive(Debug)]
pub(super) struct LineMatcher {
    engine: RegexMatcher,
    query: String,
    syntax: Syntax,
    is_crlf: bool,
    weight: u64,
    /// For texts that `engine` may search for long. Compiled when there is such a text.
    stoppable: OnceLock<Option<StoppableRegex>>,
}

impl LineMatcher {
    /// The engine for a text that is [quick](Self::is_quick).
    pub(super) fn engine(&self) -> &RegexMatcher {
        &self.engine
    }

    /// Whether a search of so many bytes takes a second at most.
    pub(super) fn is_quick(&self, bytes: usize) -> bool {
        self.weight.saturating_mul(bytes as u64) <= MAX_UNSTOPPABLE
    }

    /// The length of the longest text that is quick.
    pub(super) fn quick_bytes(&self) -> usize {
        usize::try_from(MAX_UNSTOPPABLE / self.weight).unwrap_or(usize::MAX).max(1)
    }

    /// The first match in a line that begins at or after `from`. `None` if there is none, or soon
    /// after `stop` is set.
    pub(super) fn find_at(&self, line: &[u8], from: usize, stop: &Stop) -> Option<Range<usize>> {
        if !self.is_quick(line.len() - from)
            && let Some(regex) = self.stoppable()
        {
            return regex.find_at(line, from, stop);
        }

        let found = self.engine.find_at(line, from).ok()??;
        Some(found.start()..found.end())
    }

    /// `None` only if the two engines disagree about what is too large to be compiled.
    fn stoppable(&self) -> Option<&StoppableRegex> {
        let compile =
            || StoppableRegex::new(&self.query, self.syntax, self.is_crlf, MAX_COMPILED_BYTES);
        self.stoppable.get_or_init(compile).as_ref()
    }
}

/// How a query is read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Syntax {
    pub(super) ignore_case: bool,
    /// The query is the text itself.
    pub(super) literal: bool,
    /// Matches begin and end at the ends of words.
    pub(super) whole_word: bool,
}

/// Compiles a query, which takes some CPU time.
pub(super) fn matcher(query: &str, syntax: Syntax) -> Result<SharedMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    // A query that names carriage returns gets them as characters.
    let names_returns = query.contains('\r') || (!syntax.literal && query.contains(r"\r"));
    let is_crlf = !names_returns;
    builder.crlf(is_crlf).multi_line(true);
    if names_returns {
        builder.line_terminator(Some(b'\n'));
    }

    builder.case_insensitive(syntax.ignore_case).fixed_strings(syntax.literal);
    builder.word(syntax.whole_word);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_CACHE_BYTES);

    let engine = builder.build(query)?;
    let hir = stoppable::parse(query, syntax, is_crlf);
    // An expression that only the engine can parse counts as heavy.
    let weight = hir.as_ref().map_or(u64::MAX, weight);

    let query = query.to_owned();
    let stoppable = OnceLock::new();
    Ok(Arc::new(LineMatcher { engine, query, syntax, is_crlf, weight, stoppable }))
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
