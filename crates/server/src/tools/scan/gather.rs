//! Joins searched blocks: searches the lines that cross them, and adds the context
//! of matching lines.

use std::collections::VecDeque;

use bytes::Bytes;
use larder_runtime::compute::Stop;

use super::{
    LinePart, LineSink, Search, WHOLE_LINE_BYTES,
    block::{Hit, Lines, SearchedBlock, find_hits},
    partial_line::PartialLine,
};

/// Reports the lines of blocks to a sink, in order.
pub(super) struct Gatherer<K> {
    search: Search,
    sink: K,

    /// The line that ends in a later block.
    partial_line: PartialLine,
    /// Whether blocks before the next one were left out: it may begin within a line, which is
    /// left out, too.
    is_within_line: bool,

    /// The last unreported lines: the context of the next match.
    before: VecDeque<Bytes>,
    /// The lines of context still to report after the last match.
    after: usize,
    /// The number of the line after the last reported one, from 0.
    next_line: Option<u64>,
}

/// A position in lines: a line's number, from 0, and its offset in the text.
struct Position {
    line: u64,
    offset: usize,
}

impl<K: LineSink> Gatherer<K> {
    pub(super) fn new(search: Search, sink: K) -> Self {
        let partial_line = PartialLine::default();
        let before = VecDeque::new();
        let is_within_line = false;
        let after = 0;
        let next_line = None;
        Self { search, sink, partial_line, is_within_line, before, after, next_line }
    }

    /// Leaves out blocks: they, and the lines of which they have a part, have no match and are
    /// no context of one.
    pub(super) fn leave_out(&mut self) {
        self.partial_line = PartialLine::default();
        self.before.clear();
        self.is_within_line = true;
    }

    /// Adds the next block, which has this offset in the content; `first_line` is
    /// the number, from 0, of the line at its start.
    pub(super) fn add(&mut self, first_line: u64, offset: u64, block: SearchedBlock, stop: &Stop) {
        let (head, head_ends_line, lines, tail) = block.into_parts();
        let lines_offset = offset + head.len() as u64;
        let tail_offset = lines_offset + lines.text.len() as u64;

        if self.is_within_line {
            self.is_within_line = !head_ends_line;
        } else if head_ends_line && self.partial_line.is_empty() {
            self.search_line(first_line, offset, head, stop);
        } else {
            self.partial_line.push(offset, &head);
            if head_ends_line {
                self.end_partial_line(first_line, stop);
            } else if self.partial_line.text.len() > WHOLE_LINE_BYTES {
                self.search_piece(first_line, false, stop);
            }
        }

        self.report(first_line + 1, lines_offset, &lines, stop);
        self.partial_line.push(tail_offset, &tail);
    }

    /// Ends the search after the last block. `last_line` is the number, from 0,
    /// of the content's last line.
    pub(super) fn finish(mut self, last_line: u64, stop: &Stop) -> K {
        if !self.partial_line.is_empty() {
            self.end_partial_line(last_line, stop);
        }
        self.sink
    }

    fn end_partial_line(&mut self, number: u64, stop: &Stop) {
        if self.partial_line.head.is_none() {
            let line = std::mem::take(&mut self.partial_line);
            self.search_line(number, line.offset, line.text.into(), stop);
            return;
        }

        self.search_piece(number, true, stop);
        let line = std::mem::take(&mut self.partial_line);
        let text = line.head.unwrap_or_default();
        let hits = match (self.search.invert, line.has_match) {
            // The matches in pieces of this line have been reported.
            (false, true) => return,
            (true, false) => vec![Hit::whole(&text)],
            _ => Vec::new(),
        };

        self.report(number, line.start, &Lines { text, hits }, stop);
    }

    /// Searches what is in memory of a long line, and reports its matches.
    fn search_piece(&mut self, number: u64, ended: bool, stop: &Stop) {
        if self.partial_line.head.is_none() {
            self.sink.in_pieces();
        }

        let had_match = self.partial_line.has_match;
        let piece = self.partial_line.search(&self.search.matcher, ended, stop);

        if piece.matches > 0 && !self.search.invert {
            if !had_match {
                self.report_before(number);
            }

            let text = &self.partial_line.text;
            let mut part = LinePart::whole(
                &self.search.matcher,
                number + 1,
                self.partial_line.offset,
                text,
                stop,
            );
            if !ended {
                part.text = text;
            }

            (part.count, part.is_piece) = (piece.matches, true);
            (part.starts, part.last_end) = (piece.starts.clone(), piece.last_end);
            self.sink.matched(&part);

            self.after = self.search.context;
            self.next_line = Some(number + 1);
        }

        self.partial_line.advance(&piece);
    }

    fn search_line(&mut self, number: u64, offset: u64, text: Bytes, stop: &Stop) {
        let hits = find_hits(&self.search, &text, stop);
        self.report(number, offset, &Lines { text, hits }, stop);
    }

    /// Reports matches and their context; `first` is the number, from 0, of the
    /// first of these lines, and `offset` is theirs in the content.
    fn report(&mut self, first: u64, offset: u64, lines: &Lines, stop: &Stop) {
        let mut position = Position { line: first, offset: 0 };

        for hit in &lines.hits {
            let line = first + hit.line();
            let range = hit.range();
            self.report_after(&lines.text, &mut position, range.start);
            self.remember(&lines.text, position.offset, range.start);
            self.report_before(line);

            let start = offset + range.start as u64;
            let text = &lines.text[range.clone()];
            let mut part = LinePart::whole(&self.search.matcher, line + 1, start, text, stop);
            part.count = hit.matches();
            self.sink.matched(&part);

            self.after = self.search.context;
            self.next_line = Some(line + 1);
            position = Position { line: line + 1, offset: range.end };
        }

        self.report_after(&lines.text, &mut position, lines.text.len());
        self.remember(&lines.text, position.offset, lines.text.len());
    }

    /// Reports the context after a match, up to the offset `until`.
    fn report_after(&mut self, text: &[u8], position: &mut Position, until: usize) {
        while self.after > 0 && position.offset < until {
            let rest = &text[position.offset..until];
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |index| index + 1);
            self.sink.context(position.line + 1, &rest[..length]);
            self.after -= 1;
            *position = Position { line: position.line + 1, offset: position.offset + length };
            self.next_line = Some(position.line);
        }
    }

    /// Remembers the last lines between these offsets as context of the next
    /// match.
    fn remember(&mut self, text: &Bytes, from: usize, until: usize) {
        let mut last = Vec::new();
        let mut end = until;

        while end > from && last.len() < self.search.context {
            let feed = memchr::memrchr(b'\n', &text[from..end - 1]);
            let start = feed.map_or(from, |feed| from + feed + 1);
            last.push(text.slice(start..end));
            end = start;
        }

        self.before.extend(last.into_iter().rev());
        let excess = self.before.len().saturating_sub(self.search.context);
        self.before.drain(..excess);
    }

    /// Reports the remembered lines, which end right before this one.
    fn report_before(&mut self, line: u64) {
        let from = line - self.before.len() as u64;
        if self.search.context > 0 && self.next_line.is_some_and(|next| next < from) {
            self.sink.gap();
        }

        for (number, text) in (from + 1..).zip(self.before.drain(..)) {
            self.sink.context(number, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{io, sync::Arc};

    use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
    use proptest::prelude::*;

    use super::{super::block, *};
    use crate::tools::regex;

    fn trimmed(line: &[u8]) -> Vec<u8> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line).to_vec()
    }

    /// The reported lines, in a comparable form.
    #[derive(Default)]
    struct Recorder(Vec<(char, u64, Vec<u8>)>);

    impl LineSink for Recorder {
        fn matched(&mut self, part: &LinePart<'_>) {
            self.0.push((':', part.line, part.text.to_vec()));
        }

        fn context(&mut self, line: u64, text: &[u8]) {
            self.0.push(('-', line, trimmed(text)));
        }

        fn gap(&mut self) {
            self.0.push(('~', 0, Vec::new()));
        }
    }

    impl Sink for Recorder {
        type Error = io::Error;

        fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
            self.0.push((':', found.line_number().unwrap(), trimmed(found.bytes())));
            Ok(true)
        }

        fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
            LineSink::context(self, found.line_number().unwrap(), found.bytes());
            Ok(true)
        }

        fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
            self.gap();
            Ok(true)
        }
    }

    proptest! {
        #[test]
        fn blocks_give_the_same_lines_as_ripgrep_over_the_whole_text(
            lines in prop::collection::vec("[ab\r]{0,6}", 0..40),
            ended in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            context in 0_usize..4,
            invert in any::<bool>(),
            pattern in prop::sample::select(vec!["a", "^b", "b$", "^$", "ab+a", "^a.*b$", "c", "b\\b"]),
        ) {
            let mut text = lines.join("\n");
            if ended && !text.is_empty() {
                text.push('\n');
            }

            let matcher = regex::matcher(pattern, regex::Syntax::default()).unwrap();
            let search = Search { matcher, required: None, context, invert, counts: true, keeps_filters: false, escapes: Arc::default() };

            let mut expected = Recorder::default();
            let mut whole = SearcherBuilder::new();
            let whole = whole.line_number(true).before_context(context).after_context(context);
            let whole = whole.invert_match(invert).line_terminator(grep_matcher::LineTerminator::crlf());
            whole.build().search_slice(search.matcher.engine(), text.as_bytes(), &mut expected).unwrap();

            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();

            let stop = Stop::default();
            let mut gatherer = Gatherer::new(search.clone(), Recorder::default());
            for ends in cuts.windows(2).filter(|ends| ends[0] < ends[1]) {
                let feeds = text[..ends[0]].matches('\n').count() as u64;
                let piece = Bytes::copy_from_slice(&text.as_bytes()[ends[0]..ends[1]]);
                gatherer.add(feeds, ends[0] as u64, block::search(&search, piece, &stop), &stop);
            }

            let last = text.split_inclusive('\n').count().saturating_sub(1) as u64;
            prop_assert_eq!(gatherer.finish(last, &stop).0, expected.0);
        }
    }

    /// The offsets of all matches, and the numbers of the lines of context.
    #[derive(Default)]
    struct Offsets {
        matches: Vec<u64>,
        counted: u64,
        context: Vec<u64>,
        in_pieces: usize,
        largest: usize,
    }

    impl LineSink for Offsets {
        fn matched(&mut self, part: &LinePart<'_>) {
            self.matches.extend(part.matches().map(|found| part.offset + found.start as u64));
            self.counted += part.count;
            self.largest = self.largest.max(part.text.len());
        }

        fn context(&mut self, line: u64, _: &[u8]) {
            self.context.push(line);
        }

        fn in_pieces(&mut self) {
            self.in_pieces += 1;
        }
    }

    /// A long line between two short ones, in blocks of 256 KiB.
    fn search_long_line(query: &str, invert: bool, long: &str) -> Offsets {
        let text = format!("first\n{long}\nlast\n");
        let matcher = regex::matcher(query, regex::Syntax::default()).unwrap();
        let search = Search {
            matcher,
            required: None,
            context: 1,
            invert,
            counts: true,
            keeps_filters: false,
            escapes: Arc::default(),
        };

        let stop = Stop::default();
        let mut offset = 0;
        let mut gatherer = Gatherer::new(search.clone(), Offsets::default());

        for piece in text.as_bytes().chunks(256 << 10) {
            let feeds = memchr::memchr_iter(b'\n', &text.as_bytes()[..offset]).count() as u64;
            let block = block::search(&search, Bytes::copy_from_slice(piece), &stop);
            gatherer.add(feeds, offset as u64, block, &stop);
            offset += piece.len();
            assert!(gatherer.partial_line.text.len() <= WHOLE_LINE_BYTES + (256 << 10));
        }

        gatherer.finish(2, &stop)
    }

    #[test]
    fn a_long_line_in_pieces_has_the_matches_of_the_whole_line() {
        let mut long = "ab ".repeat(600_000);
        // The matches are spread, so that some lie at the end of a piece.
        for at in (5..long.len() - 20).step_by(30_011) {
            long.replace_range(at..at + 6, "NEEDLE");
        }

        for query in ["NEEDLE", "^ab", "b $", r"\bNEEDLE\b", "E?", r"N\w*E"] {
            let matcher = regex::matcher(query, regex::Syntax::default()).unwrap();
            let stop = Stop::default();
            let whole = LinePart::whole(&matcher, 2, 6, long.as_bytes(), &stop);
            let mut expected: Vec<u64> = whole.matches().map(|m| 6 + m.start as u64).collect();
            if query == "E?" {
                // The query has an empty match at each byte of the short lines, too.
                expected.splice(0..0, 0..=5);
                let last = 6 + long.len() as u64 + 1;
                expected.extend(last..=last + 4);
            }

            let found = search_long_line(query, false, &long);
            assert_eq!(found.matches.len(), expected.len(), "{query}");
            assert!(found.matches == expected, "{query}");
            assert_eq!(found.counted, expected.len() as u64, "{query}");
            assert_eq!(found.in_pieces, 1);
            assert!(found.largest <= WHOLE_LINE_BYTES + (256 << 10));
        }
    }

    #[test]
    fn a_long_line_is_context_and_is_without_a_match() {
        let long = "ab ".repeat(400_000);

        let found = search_long_line("first|last", false, &long);
        assert_eq!((found.counted, found.context), (2, vec![2]));

        let found = search_long_line("ab", false, &long);
        assert_eq!((found.counted, found.context), (400_000, vec![1, 3]));

        let found = search_long_line("first|last", true, &long);
        assert_eq!((found.counted, found.context), (1, vec![1, 3]));

        let found = search_long_line("b a", true, &long);
        assert_eq!((found.counted, found.context), (2, vec![2]));
    }
}
