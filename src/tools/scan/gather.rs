//! Joins searched blocks: searches the lines that cross them, and adds the context
//! of matching lines.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{
    super::regex::SharedMatcher,
    LineSink,
    block::{Lines, SearchedBlock, find_hits},
};
use crate::compute::Stop;

/// Reports the lines of blocks to a sink, in order.
pub(super) struct Gatherer<K> {
    matcher: SharedMatcher,
    /// The lines of context before and after a match.
    context: usize,
    sink: K,
    /// The beginning of a line that ends in a later block.
    partial_line: Vec<u8>,
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
    pub(super) fn new(matcher: SharedMatcher, context: usize, sink: K) -> Self {
        let (partial_line, before) = (Vec::new(), VecDeque::new());
        Self { matcher, context, sink, partial_line, before, after: 0, next_line: None }
    }

    /// The bytes so far of a line that has not ended.
    pub(super) fn partial_line_len(&self) -> usize {
        self.partial_line.len()
    }

    /// Adds the next block; `first_line` is the number, from 0, of the line at
    /// its start.
    pub(super) fn add(&mut self, first_line: u64, block: SearchedBlock, stop: &Stop) {
        let (head, head_ends_line, lines, tail) = block.into_parts();
        if !head_ends_line {
            self.partial_line.extend_from_slice(&head);
            return;
        }
        let line = if self.partial_line.is_empty() {
            head
        } else {
            self.partial_line.extend_from_slice(&head);
            std::mem::take(&mut self.partial_line).into()
        };
        self.search_line(first_line, line, stop);
        self.report(first_line + 1, &lines);
        self.partial_line.extend_from_slice(&tail);
    }

    /// Ends the search after the last block. `last_line` is the number, from 0,
    /// of the content's last line.
    pub(super) fn finish(mut self, last_line: u64, stop: &Stop) -> K {
        if !self.partial_line.is_empty() {
            let line = std::mem::take(&mut self.partial_line).into();
            self.search_line(last_line, line, stop);
        }
        self.sink
    }

    fn search_line(&mut self, number: u64, text: Bytes, stop: &Stop) {
        let hits = find_hits(&self.matcher, &text, stop);
        self.report(number, &Lines { text, hits });
    }

    /// Reports matches and their context; `first` is the number, from 0, of the
    /// first of these lines.
    fn report(&mut self, first: u64, lines: &Lines) {
        let mut position = Position { line: first, offset: 0 };
        for hit in &lines.hits {
            let (line, range) = (first + hit.line(), hit.range());
            self.report_after(&lines.text, &mut position, range.start);
            self.remember(&lines.text, position.offset, range.start);
            self.report_before(line);
            self.sink.matched(line + 1, &lines.text[range.clone()]);
            self.after = self.context;
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
        let (mut last, mut end) = (Vec::new(), until);
        while end > from && last.len() < self.context {
            let feed = memchr::memrchr(b'\n', &text[from..end - 1]);
            let start = feed.map_or(from, |feed| from + feed + 1);
            last.push(text.slice(start..end));
            end = start;
        }
        self.before.extend(last.into_iter().rev());
        let excess = self.before.len().saturating_sub(self.context);
        self.before.drain(..excess);
    }

    /// Reports the remembered lines, which end right before this one.
    fn report_before(&mut self, line: u64) {
        let from = line - self.before.len() as u64;
        if self.context > 0 && self.next_line.is_some_and(|next| next < from) {
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

    use std::io;

    use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
    use proptest::prelude::*;

    use super::{super::block, *};
    use crate::tools::regex;

    /// The reported lines, in a comparable form.
    #[derive(Default)]
    struct Recorder(Vec<(char, u64, Vec<u8>)>);

    impl LineSink for Recorder {
        fn matched(&mut self, line: u64, text: &[u8]) {
            self.0.push((':', line, text.to_vec()));
        }

        fn context(&mut self, line: u64, text: &[u8]) {
            self.0.push(('-', line, text.to_vec()));
        }

        fn gap(&mut self) {
            self.0.push(('~', 0, Vec::new()));
        }
    }

    impl Sink for Recorder {
        type Error = io::Error;

        fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
            LineSink::matched(self, found.line_number().unwrap(), found.bytes());
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
            pattern in prop::sample::select(vec!["a", "^b", "b$", "^$", "ab+a", "^a.*b$", "c", "b\\b"]),
        ) {
            let mut text = lines.join("\n");
            if ended && !text.is_empty() {
                text.push('\n');
            }
            let matcher = regex::matcher(pattern, false).unwrap();
            let mut expected = Recorder::default();
            let mut whole = SearcherBuilder::new();
            let whole = whole.line_number(true).before_context(context).after_context(context);
            whole.build().search_slice(&*matcher, text.as_bytes(), &mut expected).unwrap();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let stop = Stop::default();
            let mut gatherer = Gatherer::new(matcher.clone(), context, Recorder::default());
            for ends in cuts.windows(2).filter(|ends| ends[0] < ends[1]) {
                let feeds = text[..ends[0]].matches('\n').count() as u64;
                let piece = Bytes::copy_from_slice(&text.as_bytes()[ends[0]..ends[1]]);
                gatherer.add(feeds, block::search(&matcher, piece, &stop), &stop);
            }
            let last = text.split_inclusive('\n').count().saturating_sub(1) as u64;
            prop_assert_eq!(gatherer.finish(last, &stop).0, expected.0);
        }
    }
}
