//! Blocks that were searched, put together again: lines that cross them, and
//! the context of lines that match.

use std::collections::VecDeque;

use bytes::Bytes;
use grep_regex::RegexMatcher;

use super::{
    Report,
    block::{Lines, Searched, hits},
};

pub(super) struct Gather<R> {
    matcher: RegexMatcher,
    /// How many lines are told before and after one that matches.
    context: usize,
    report: R,
    /// What is there of a line whose end is in a later block.
    open: Vec<u8>,
    /// The last lines before the next one, as far as they are not told: its context if it matches.
    before: VecDeque<Bytes>,
    /// How many lines are still to be told after a match.
    after: usize,
    /// The line after the last one that was told.
    next: Option<u64>,
}

/// How far lines have been gone through.
struct Passed {
    line: u64,
    at: usize,
}

impl<R: Report> Gather<R> {
    pub(super) fn new(matcher: RegexMatcher, context: usize, report: R) -> Self {
        let (open, before) = (Vec::new(), VecDeque::new());
        Self { matcher, context, report, open, before, after: 0, next: None }
    }

    /// How much there is of a line that has not ended.
    pub(super) fn open_line(&self) -> usize {
        self.open.len()
    }

    /// How many bytes it takes to take that.
    pub(super) fn work(&self, block: &Searched) -> usize {
        self.open.len() + block.head() + block.matching()
    }

    /// Accepts the next block; `first_line` is the number from 0 of the line in
    /// which it begins.
    pub(super) fn take(&mut self, first_line: u64, block: Searched) {
        let (head, ends, lines, tail) = block.into_parts();
        if !ends {
            self.open.extend_from_slice(&head);
            return;
        }
        let line = if self.open.is_empty() {
            head
        } else {
            self.open.extend_from_slice(&head);
            std::mem::take(&mut self.open).into()
        };
        self.line(first_line, line);
        self.tell(first_line + 1, &lines);
        self.open.extend_from_slice(&tail);
    }

    /// After the last block; the content's last line has that number from 0.
    pub(super) fn finish(mut self, last_line: u64) -> R {
        if !self.open.is_empty() {
            let line = std::mem::take(&mut self.open).into();
            self.line(last_line, line);
        }
        self.report
    }

    fn line(&mut self, number: u64, text: Bytes) {
        let hits = hits(&self.matcher, &text);
        self.tell(number, &Lines { text, hits });
    }

    /// Tells of lines, the first of which has that number from 0.
    fn tell(&mut self, first: u64, lines: &Lines) {
        let mut passed = Passed { line: first, at: 0 };
        for hit in &lines.hits {
            let (line, range) = (first + hit.line(), hit.range());
            self.tell_after(&lines.text, &mut passed, range.start);
            self.keep(&lines.text, passed.at, range.start);
            self.tell_before(line);
            self.report.matched(line + 1, &lines.text[range.clone()]);
            self.after = self.context;
            self.next = Some(line + 1);
            passed = Passed { line: line + 1, at: range.end };
        }
        self.tell_after(&lines.text, &mut passed, lines.text.len());
        self.keep(&lines.text, passed.at, lines.text.len());
    }

    /// Tells the lines after a match, up to there.
    fn tell_after(&mut self, text: &[u8], passed: &mut Passed, until: usize) {
        while self.after > 0 && passed.at < until {
            let rest = &text[passed.at..until];
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            self.report.context(passed.line + 1, &rest[..length]);
            self.after -= 1;
            *passed = Passed { line: passed.line + 1, at: passed.at + length };
            self.next = Some(passed.line);
        }
    }

    /// Keeps the last of the lines between these places.
    fn keep(&mut self, text: &Bytes, from: usize, until: usize) {
        let (mut last, mut end) = (Vec::new(), until);
        while end > from && last.len() < self.context {
            let feed = memchr::memrchr(b'\n', &text[from..end - 1]);
            let start = feed.map_or(from, |feed| from + feed + 1);
            last.push(text.slice(start..end));
            end = start;
        }
        self.before.extend(last.into_iter().rev());
        let more = self.before.len().saturating_sub(self.context);
        self.before.drain(..more);
    }

    /// Tells what was kept, which stands right before that line.
    fn tell_before(&mut self, line: u64) {
        let from = line - self.before.len() as u64;
        if self.context > 0 && self.next.is_some_and(|next| next < from) {
            self.report.gap();
        }
        for (number, text) in (from + 1..).zip(self.before.drain(..)) {
            self.report.context(number, &text);
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
    use crate::tools::pattern;

    /// What was told, in a form in which it can be compared.
    #[derive(Default)]
    struct Told(Vec<(char, u64, Vec<u8>)>);

    impl Report for Told {
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

    impl Sink for Told {
        type Error = io::Error;

        fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
            Report::matched(self, found.line_number().unwrap(), found.bytes());
            Ok(true)
        }

        fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
            Report::context(self, found.line_number().unwrap(), found.bytes());
            Ok(true)
        }

        fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
            self.gap();
            Ok(true)
        }
    }

    proptest! {
        #[test]
        fn blocks_tell_what_ripgrep_tells_of_the_whole(
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
            let matcher = pattern::matcher(pattern, false).unwrap();
            let mut expected = Told::default();
            let mut whole = SearcherBuilder::new();
            let whole = whole.line_number(true).before_context(context).after_context(context);
            whole.build().search_slice(&matcher, text.as_bytes(), &mut expected).unwrap();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut gather = Gather::new(matcher.clone(), context, Told::default());
            for ends in cuts.windows(2).filter(|ends| ends[0] < ends[1]) {
                let feeds = text[..ends[0]].matches('\n').count() as u64;
                let piece = Bytes::copy_from_slice(&text.as_bytes()[ends[0]..ends[1]]);
                gather.take(feeds, block::search(&matcher, piece));
            }
            let last = text.split_inclusive('\n').count().saturating_sub(1) as u64;
            prop_assert_eq!(gather.finish(last).0, expected.0);
        }
    }
}
