//! [`LinePart`]: a line that matches, or a piece of one.

use std::ops::Range;

use larder_runtime::compute::Stop;

use super::matches::{Matches, without_break};
use crate::tools::regex::LineMatcher;

/// A line that matches, or a piece of a long one, which comes in several parts.
pub(crate) struct LinePart<'a> {
    /// The number of the line, from 1.
    pub(crate) line: u64,
    /// The offset of `text` in the content.
    pub(crate) offset: u64,
    /// Without the line break.
    pub(crate) text: &'a [u8],
    /// The number of matches; 1 if they are not counted.
    pub(crate) count: u64,
    /// Whether it is a piece of a long line.
    pub(crate) is_piece: bool,

    pub(super) matcher: &'a LineMatcher,
    pub(super) starts: Range<usize>,
    pub(super) last_end: Option<usize>,
    /// Set when nobody waits for the search.
    pub(crate) stop: &'a Stop,
}

impl<'a> LinePart<'a> {
    /// A whole line.
    pub(crate) fn whole(
        matcher: &'a LineMatcher,
        line: u64,
        offset: u64,
        text: &'a [u8],
        stop: &'a Stop,
    ) -> Self {
        let text = without_break(matcher, text);
        let starts = 0..text.len() + 1;
        let count = 1;
        let is_piece = false;
        let last_end = None;
        Self { line, offset, text, count, is_piece, matcher, starts, last_end, stop }
    }

    /// The ranges of the matches in the text.
    pub(crate) fn matches(&self) -> Matches<'a> {
        Matches::new(self.matcher, self.text, self.starts.clone(), self.last_end, self.stop)
    }
}
