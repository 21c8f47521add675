//! Searches the complete lines of one block.

use std::{io, ops::Range};

use bytes::Bytes;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};

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
}

impl Hit {
    pub(super) fn line(&self) -> u64 {
        self.line.into()
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

pub(super) fn search(matcher: &RegexMatcher, block: Bytes) -> SearchedBlock {
    let start = memchr::memchr(b'\n', &block).map_or(block.len(), |index| index + 1);
    let end = memchr::memrchr(b'\n', &block).map_or(start, |index| index + 1);
    let hits = find_hits(matcher, &block[start..end]);
    SearchedBlock { block, complete_lines: start..end, hits }
}

impl SearchedBlock {
    /// The bytes before its complete lines: the end of an earlier block's line.
    pub(super) fn head_len(&self) -> usize {
        self.complete_lines.start
    }

    /// The bytes of its matching lines.
    pub(super) fn matching_bytes(&self) -> usize {
        self.hits.iter().map(|hit| hit.range().len()).sum()
    }

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

/// The matching lines of a text.
pub(super) fn find_hits(matcher: &RegexMatcher, text: &[u8]) -> Vec<Hit> {
    let mut collector = HitCollector(Vec::new());
    let mut searcher = SearcherBuilder::new().line_number(true).build();
    // A slice needs no I/O, and a block's offsets fit 32 bits: this cannot fail.
    let _ = searcher.search_slice(matcher, text, &mut collector);
    collector.0
}

struct HitCollector(Vec<Hit>);

impl Sink for HitCollector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let small = |number: u64| u32::try_from(number).map_err(io::Error::other);
        let start = found.absolute_byte_offset();
        self.0.push(Hit {
            line: small(found.line_number().unwrap_or(1) - 1)?,
            start: small(start)?,
            end: small(start + found.bytes().len() as u64)?,
        });
        Ok(true)
    }
}
