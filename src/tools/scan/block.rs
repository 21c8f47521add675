//! One block, searched by itself: the lines that lie in it as a whole.

use std::{io, ops::Range};

use bytes::Bytes;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};

/// A block, and which of its whole lines match.
pub(super) struct Searched {
    block: Bytes,
    /// Where its whole lines begin and end: after its first line feed and after
    /// its last one. What is before and behind belongs to lines that it shares.
    whole: Range<usize>,
    hits: Vec<Hit>,
}

/// Lines, whole but for the last one of the content.
pub(super) struct Lines {
    pub(super) text: Bytes,
    pub(super) hits: Vec<Hit>,
}

/// A line that matches: which one from 0, and where in the text.
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

pub(super) fn search(matcher: &RegexMatcher, block: Bytes) -> Searched {
    let begin = memchr::memchr(b'\n', &block).map_or(block.len(), |at| at + 1);
    let end = memchr::memrchr(b'\n', &block).map_or(begin, |at| at + 1);
    let hits = hits(matcher, &block[begin..end]);
    Searched { block, whole: begin..end, hits }
}

impl Searched {
    /// How long its part of the line is in which it begins.
    pub(super) fn head(&self) -> usize {
        self.whole.start
    }

    /// How many bytes the lines have that match.
    pub(super) fn matching(&self) -> usize {
        self.hits.iter().map(|hit| hit.range().len()).sum()
    }

    /// The end of the line in which it begins, if it ends there; the whole
    /// lines; and what is there of the next.
    pub(super) fn into_parts(self) -> (Bytes, bool, Lines, Bytes) {
        let head = self.block.slice(..self.whole.start);
        let tail = self.block.slice(self.whole.end..);
        let ends = head.last() == Some(&b'\n');
        let text = self.block.slice(self.whole);
        (head, ends, Lines { text, hits: self.hits }, tail)
    }
}

/// Which lines match.
pub(super) fn hits(matcher: &RegexMatcher, text: &[u8]) -> Vec<Hit> {
    let mut hits = Hits(Vec::new());
    let mut searcher = SearcherBuilder::new().line_number(true).build();
    // Of a slice, nothing is read that could fail, and the sink does not.
    let _ = searcher.search_slice(matcher, text, &mut hits);
    hits.0
}

struct Hits(Vec<Hit>);

impl Sink for Hits {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let small = |at: u64| u32::try_from(at).map_err(io::Error::other);
        let start = found.absolute_byte_offset();
        self.0.push(Hit {
            line: small(found.line_number().unwrap_or(1) - 1)?,
            start: small(start)?,
            end: small(start + found.bytes().len() as u64)?,
        });
        Ok(true)
    }
}
