//! The matches within a line.

use std::ops::Range;

use grep_matcher::Matcher;
use larder_runtime::compute::Stop;

use crate::tools::regex::LineMatcher;

/// Matches in a text, in order, which do not overlap. Ends early once `stop` is
/// set.
#[derive(Clone)]
pub(crate) struct Matches<'a> {
    matcher: &'a LineMatcher,
    text: &'a [u8],
    stop: &'a Stop,
    /// The offsets where the next match may begin.
    starts: Range<usize>,
    /// The end of the last match: an empty match there is part of it.
    last_end: Option<usize>,
}

impl<'a> Matches<'a> {
    /// The matches that begin in `starts`. The text around them counts for
    /// assertions such as `^`.
    pub(super) fn new(
        matcher: &'a LineMatcher,
        text: &'a [u8],
        starts: Range<usize>,
        last_end: Option<usize>,
        stop: &'a Stop,
    ) -> Self {
        Self { matcher, text, stop, starts, last_end }
    }
}

impl Iterator for Matches<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while !self.starts.is_empty() && self.starts.start <= self.text.len() {
            if self.stop.is_set() {
                return None;
            }

            let found = self.matcher.find_at(self.text, self.starts.start, self.stop)?;
            if found.start >= self.starts.end {
                return None;
            }

            self.starts.start = found.end + usize::from(found.is_empty());
            if !found.is_empty() || self.last_end != Some(found.end) {
                self.last_end = Some(found.end);
                return Some(found);
            }
        }
        None
    }
}

/// A line without its line break. A carriage return belongs to it, unless the
/// matcher lets `$` match before that.
pub(super) fn without_break<'a>(matcher: &LineMatcher, line: &'a [u8]) -> &'a [u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    match matcher.engine().line_terminator() {
        Some(terminator) if terminator.is_crlf() => line.strip_suffix(b"\r").unwrap_or(line),
        _ => line,
    }
}
