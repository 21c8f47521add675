//! Searches the complete lines of one block.

use std::{io, ops::Range};

use bytes::Bytes;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};

use super::{
    Search,
    matches::{Matches, without_break},
};
use crate::compute::Stop;

/// A block, and the matches in its complete lines.
pub(super) struct SearchedBlock {
    block: Bytes,
    /// The range of its complete lines: from after its first line feed to after
    /// its last one. The bytes around it belong to lines that cross blocks.
    complete_lines: Range<usize>,
    hits: Vec<Hit>,
}

/// Complete lines. The last line of the content may lack its line feed.
pub(super) struct Lines {
    pub(super) text: Bytes,
    pub(super) hits: Vec<Hit>,
}

/// A matching line: its number, from 0, and its range in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    line: u32,
    start: u32,
    end: u32,
    matches: u32,
}

impl Hit {
    /// The only line of a text.
    pub(super) fn whole(text: &[u8]) -> Self {
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        Self { line: 0, start: 0, end, matches: 1 }
    }

    pub(super) fn line(&self) -> u64 {
        self.line.into()
    }

    /// The number of matches, if they are counted.
    pub(super) fn matches(&self) -> u64 {
        self.matches.into()
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

pub(super) fn search(search: &Search, block: Bytes, stop: &Stop) -> SearchedBlock {
    let start = memchr::memchr(b'\n', &block).map_or(block.len(), |index| index + 1);
    let end = memchr::memrchr(b'\n', &block).map_or(start, |index| index + 1);
    let hits = find_hits(search, &block[start..end], stop);
    SearchedBlock { block, complete_lines: start..end, hits }
}

impl SearchedBlock {
    /// The bytes before its complete lines, and whether the line ends there; the
    /// complete lines; the bytes after them.
    pub(super) fn into_parts(self) -> (Bytes, bool, Lines, Bytes) {
        let head = self.block.slice(..self.complete_lines.start);
        let tail = self.block.slice(self.complete_lines.end..);
        let head_ends_line = head.last() == Some(&b'\n');
        let text = self.block.slice(self.complete_lines);
        (head, head_ends_line, Lines { text, hits: self.hits }, tail)
    }
}

/// How many bytes of lines are searched before the next look at the stop.
const SLICE_BYTES: usize = 16 << 10;

/// The matching lines of a text; once `stop` is set, some of them.
pub(super) fn find_hits(search: &Search, text: &[u8], stop: &Stop) -> Vec<Hit> {
    let matcher = &*search.matcher;
    let mut searcher = SearcherBuilder::new();
    searcher.line_number(false).invert_match(search.invert);
    // It has to be that of the matcher.
    searcher.line_terminator(matcher.line_terminator().unwrap_or(LineTerminator::byte(b'\n')));
    let mut searcher = searcher.build();
    let mut collector =
        HitCollector { search, stop, text, hits: Vec::new(), start: 0, line: 0, counted: 0 };
    let mut rest = text;
    while !rest.is_empty() && !stop.is_set() {
        let (slice, after) = rest.split_at(slice_end(rest));
        if slice.len() > 2 * SLICE_BYTES && is_slow(matcher, slice, stop) {
            break;
        }
        // A slice needs no I/O, and a block's offsets fit 32 bits: this cannot fail.
        let _ = searcher.search_slice(matcher, slice, &mut collector);
        collector.start += slice.len();
        rest = after;
    }
    collector.hits
}

/// Where to cut a text after about [`SLICE_BYTES`], at the end of a line.
fn slice_end(text: &[u8]) -> usize {
    if text.len() <= SLICE_BYTES {
        return text.len();
    }
    match memchr::memrchr(b'\n', &text[..SLICE_BYTES]) {
        Some(feed) => feed + 1,
        None => memchr::memchr(b'\n', text).map_or(text.len(), |feed| feed + 1),
    }
}

/// Whether the stop is set before parts of a long line are searched. The engine
/// cannot be interrupted within a line, and a regular expression that is slow on
/// the whole is slow on the parts.
pub(super) fn is_slow(matcher: &RegexMatcher, line: &[u8], stop: &Stop) -> bool {
    line.chunks(SLICE_BYTES).any(|part| {
        // Only the time matters.
        let _ = matcher.is_match(part);
        stop.is_set()
    })
}

/// Collects hits of consecutive slices.
struct HitCollector<'a> {
    search: &'a Search,
    stop: &'a Stop,
    text: &'a [u8],
    hits: Vec<Hit>,
    /// The slice's offset in the text.
    start: usize,
    /// The number of line feeds in the first `counted` bytes: they are counted up to matches
    /// only, because most texts have none.
    line: usize,
    counted: usize,
}

impl HitCollector<'_> {
    /// The number of matches in a line.
    fn count(&self, line: &[u8]) -> usize {
        if !self.search.counts || self.search.invert {
            return 1;
        }
        let matcher = &self.search.matcher;
        let text = without_break(matcher, line);
        Matches::new(matcher, text, 0..text.len() + 1, None, self.stop).count().max(1)
    }
}

impl Sink for HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let small = |number: usize| u32::try_from(number).map_err(io::Error::other);
        let offset = usize::try_from(found.absolute_byte_offset()).map_err(io::Error::other)?;
        let start = self.start + offset;
        self.line += memchr::memchr_iter(b'\n', &self.text[self.counted..start]).count();
        self.counted = start;
        self.hits.push(Hit {
            line: small(self.line)?,
            start: small(start)?,
            end: small(start + found.bytes().len())?,
            matches: small(self.count(found.bytes()))?,
        });
        Ok(true)
    }
}
