//! Searches the complete lines of one block.

use std::{io, ops::Range, sync::atomic::Ordering};

use bytes::Bytes;
use grep_matcher::{LineTerminator, Matcher};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};
use larder_records::has_escapes;
use larder_runtime::compute::Stop;

use super::{
    Search,
    matches::{Matches, without_break},
};

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
    if has_escapes(&block) {
        search.escapes.store(true, Ordering::Relaxed);
    }

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

/// The most bytes of lines that are searched before the next look at the stop.
const SLICE_BYTES: usize = 16 << 10;

/// The matching lines of a text; once `stop` is set, some of them.
pub(super) fn find_hits(search: &Search, text: &[u8], stop: &Stop) -> Vec<Hit> {
    let matcher = &*search.matcher;
    let engine = matcher.engine();

    let mut searcher = SearcherBuilder::new();
    searcher.line_number(false).invert_match(search.invert);
    // The terminator has to be the matcher's.
    searcher.line_terminator(engine.line_terminator().unwrap_or(LineTerminator::byte(b'\n')));
    let mut searcher = searcher.build();
    let mut collector =
        HitCollector { search, stop, text, hits: Vec::new(), start: 0, line: 0, counted: 0 };

    let slice_bytes = matcher.quick_bytes().min(SLICE_BYTES);
    let mut rest = text;
    while !rest.is_empty() && !stop.is_set() {
        let (slice, after) = rest.split_at(slice_end(rest, slice_bytes));
        // The search cannot fail: a slice needs no I/O, and a block's offsets fit 32 bits.
        let _ = if matcher.is_quick(slice.len()) {
            searcher.search_slice(engine, slice, &mut collector)
        } else {
            // Slices are cut so that only a line can be longer.
            collector.search_line(slice)
        };

        collector.start += slice.len();
        rest = after;
    }

    collector.hits
}

/// The end of a slice of about that many bytes, at the end of a line.
fn slice_end(text: &[u8], bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }

    match memchr::memrchr(b'\n', &text[..bytes]) {
        Some(feed) => feed + 1,
        None => memchr::memchr(b'\n', text).map_or(text.len(), |feed| feed + 1),
    }
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

impl HitCollector<'_> {
    /// Searches a line for longer than may pass before the next look at the stop.
    fn search_line(&mut self, line: &[u8]) -> Result<(), io::Error> {
        let matcher = &self.search.matcher;
        let found = matcher.find_at(without_break(matcher, line), 0, self.stop).is_some();
        if found != self.search.invert && !self.stop.is_set() {
            self.add(0, line)?;
        }
        Ok(())
    }

    /// Adds a matching line, which has this offset in the slice.
    fn add(&mut self, offset: usize, line: &[u8]) -> Result<(), io::Error> {
        let small = |number: usize| u32::try_from(number).map_err(io::Error::other);
        let start = self.start + offset;
        self.line += memchr::memchr_iter(b'\n', &self.text[self.counted..start]).count();
        self.counted = start;

        self.hits.push(Hit {
            line: small(self.line)?,
            start: small(start)?,
            end: small(start + line.len())?,
            matches: small(self.count(line))?,
        });
        Ok(())
    }
}

impl Sink for HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let offset = usize::try_from(found.absolute_byte_offset()).map_err(io::Error::other)?;
        self.add(offset, found.bytes()).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{
        sync::{Arc, mpsc},
        time::Duration,
    };

    use super::*;
    use larder_runtime::compute::Compute;

    use crate::tools::regex;

    fn search(query: &str) -> Search {
        let matcher = regex::matcher(query, regex::Syntax::default()).unwrap();
        let context = 0;
        let invert = false;
        let counts = true;
        Search {
            matcher,
            required: None,
            context,
            invert,
            counts,
            keeps_filters: false,
            escapes: Arc::default(),
        }
    }

    /// A line in which a search for [`HARD`] is in thousands of places at once.
    fn hard_line() -> Vec<u8> {
        let mut line = b"ab".repeat(128 << 10);
        line.push(b'\n');
        line
    }

    const HARD: &str = "[ab]*a[ab]{20000}c";

    #[test]
    fn a_search_within_a_line_stops_when_nobody_waits_for_it() {
        // A search that does not look at the stop takes minutes in an unoptimised build.
        const DEADLINE: Duration = Duration::from_secs(60);

        let hard = search(HARD);
        let (sender, events) = mpsc::channel();
        let searching = Compute::queue("searcher", move |stop| {
            sender.send("began").unwrap();
            let hits = find_hits(&hard, &hard_line(), stop);
            assert!(hits.is_empty());
            sender.send("ended").unwrap();
        });

        assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "began");

        drop(searching);
        assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "ended");
    }

    #[test]
    fn a_line_that_takes_long_has_the_hits_of_a_quick_search() {
        let mut text = b"first\n".to_vec();
        text.extend(b"y".repeat(37_000));
        text.extend(b"ab".repeat(1_500));
        text.extend(b"x\r\nxab\n");
        let query = "[ab]{3000}x|^x";
        let matcher = search(query).matcher;
        assert!(!matcher.is_quick(40_001) && matcher.is_quick(16 << 10));

        let hits = find_hits(&search(query), &text, &Stop::default());
        let found: Vec<_> =
            hits.iter().map(|hit| (hit.line(), hit.range(), hit.matches())).collect();
        let long = 6..6 + 40_003;
        assert_eq!(found, [(1, long.clone(), 1), (2, long.end..long.end + 4, 1)]);

        let inverted = Search { invert: true, ..search(query) };
        let hits = find_hits(&inverted, &text, &Stop::default());
        assert_eq!(hits.iter().map(Hit::line).collect::<Vec<_>>(), [0]);
    }
}
