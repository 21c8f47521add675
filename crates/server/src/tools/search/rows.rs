//! [`Rows`]: what a search shows, and the totals.

use std::ops::Range;

use super::{
    super::{
        scan::{LinePart, LineSink},
        wording::{line_excerpt, match_excerpt},
    },
    LINE_BYTES,
};

/// Of longer lines each match is shown, not the line, in bytes.
const LONG_LINE_BYTES: usize = 2_000;
/// The most bytes of a match that are shown.
const MATCH_BYTES: usize = 2_000;
/// The bytes shown before and after a match in a long line.
const AROUND_BYTES: usize = 120;
/// The most matches of one line that are located.
const MAX_PLACES: usize = 4;
/// About the bytes of a row besides its text.
const ROW_BYTES: usize = 24;

#[derive(Debug)]
pub(super) enum Row {
    Gap,
    Context { line: u64, text: String },
    Match(MatchRow),
}

/// A line with its matches, or one match in a long line.
#[derive(Debug)]
pub(super) struct MatchRow {
    pub(super) line: u64,
    /// Whether the line is long: the row is one match.
    pub(super) is_long: bool,
    pub(super) text: String,
    /// The offsets of matches in the content, in ascending order.
    pub(super) at: Vec<u64>,
    /// The number of matches up to the end of this row.
    pub(super) passed: u64,
    /// The first match in the content, in bytes; of an inverted search the line.
    pub(super) found: Range<u64>,
    /// The offset of the line, or of the searched part of a long line.
    pub(super) start: u64,
    /// The bytes of the line, or of the searched part of a long line.
    pub(super) len: usize,
}

/// The rows and columns to show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The most bytes of text.
    pub(super) budget: usize,
    /// How many matches to skip.
    pub(super) skip: u64,
    /// How many matches to show.
    pub(super) limit: u64,
    /// The most matches of one long line to show.
    pub(super) max_per_line: u64,
    /// Lines without a match.
    pub(super) invert: bool,
    pub(super) count_only: bool,
}

/// Collects rows, and counts all matches.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) items: Vec<Row>,
    pub(super) matches: u64,
    pub(super) lines: u64,
    /// Whether a match was left out because of `max_per_line`.
    pub(super) left_out: bool,
    /// Whether a line was searched in pieces.
    pub(super) in_pieces: bool,

    wanted: Wanted,
    bytes: usize,
    shown: u64,
    /// The last line that matched, and its matches so far.
    last: (u64, u64),
    /// No more rows are added, so that the result has no gaps.
    full: bool,
}

impl Rows {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            items: Vec::new(),
            matches: 0,
            lines: 0,
            left_out: false,
            in_pieces: false,
            wanted,
            bytes: 0,
            shown: 0,
            last: (0, 0),
            full: wanted.count_only,
        }
    }

    /// The offsets of the matches to locate, in ascending order.
    pub(super) fn offsets(&self) -> Vec<u64> {
        let of = |row: &Row| match row {
            Row::Match(row) => row.at.clone(),
            Row::Gap | Row::Context { .. } => Vec::new(),
        };
        self.items.iter().flat_map(of).collect()
    }

    /// Makes room for a row of this text.
    fn takes(&mut self, text: &str) -> bool {
        let bytes = self.bytes + text.len() + ROW_BYTES;
        // A result has at least one row, or the next call would repeat this call.
        self.full |= bytes > self.wanted.budget && !self.items.is_empty();
        if !self.full {
            self.bytes = bytes;
        }
        !self.full
    }

    fn add_line(&mut self, part: &LinePart<'_>) {
        let is_inverted = self.wanted.invert;
        let mut at = Vec::new();
        let mut first = 0;
        let mut end = 0;
        let whole = part.text.strip_suffix(b"\n").unwrap_or(part.text).len();
        let mut found = part.offset..part.offset + whole as u64;

        if is_inverted {
            at.push(part.offset);
        } else {
            // The matches of a line come together; those before the offset are not the first.
            let before = self.matches - part.count;
            let skipped = usize::try_from(self.wanted.skip.saturating_sub(before));
            for range in part.matches().skip(skipped.unwrap_or(usize::MAX)) {
                if at.is_empty() {
                    first = range.start;
                    found = part.offset + range.start as u64..part.offset + range.end as u64;
                }
                if at.len() < MAX_PLACES {
                    at.push(part.offset + place(part.text, &range) as u64);
                }
                end = range.end;
            }
        }

        // The excerpt has all matches of the line, if they are not far apart.
        let text = line_excerpt(part.text, first, LINE_BYTES.max((end - first) * 2));
        if self.takes(&text) {
            self.shown += part.count;
            self.items.push(Row::Match(MatchRow {
                line: part.line,
                is_long: false,
                text,
                at,
                passed: self.matches,
                found,
                start: part.offset,
                len: part.text.len(),
            }));
        }
    }

    /// Adds matches of a long line; `before` have been counted before this part,
    /// `in_line` of them in this line.
    fn add_matches(&mut self, part: &LinePart<'_>, before: u64, in_line: u64) {
        for (index, found) in (1..).zip(part.matches()) {
            let passed = before + index;
            if passed <= self.wanted.skip {
                continue;
            }

            if in_line + index > self.wanted.max_per_line {
                self.left_out = true;
                if let Some(Row::Match(last)) = self.items.last_mut() {
                    last.passed = self.matches;
                }
                return;
            }

            if self.shown >= self.wanted.limit {
                self.full = true;
                return;
            }

            let text = match_excerpt(part.text, found.clone(), AROUND_BYTES, MATCH_BYTES);
            if !self.takes(&text) {
                return;
            }

            self.shown += 1;
            let at = vec![part.offset + place(part.text, &found) as u64];
            self.items.push(Row::Match(MatchRow {
                line: part.line,
                is_long: true,
                text,
                at,
                passed,
                found: part.offset + found.start as u64..part.offset + found.end as u64,
                start: part.offset,
                len: part.text.len(),
            }));
        }
    }
}

/// The first byte of a match that is no separator: the place of `, "a": 1` is that
/// of the key.
fn place(text: &[u8], found: &Range<usize>) -> usize {
    let bytes = &text[found.clone()];
    let is_separator = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    found.start + bytes.iter().position(|byte| !is_separator(byte)).unwrap_or(0)
}

impl LineSink for Rows {
    fn matched(&mut self, part: &LinePart<'_>) {
        let in_line = if self.last.0 == part.line { self.last.1 } else { 0 };
        self.lines += u64::from(self.last.0 != part.line);
        self.last = (part.line, in_line + part.count);
        let before = self.matches;
        self.matches += part.count;

        if self.matches <= self.wanted.skip || self.full {
            return;
        }

        if self.shown >= self.wanted.limit && in_line < self.wanted.max_per_line {
            self.full = true;
        } else if !self.wanted.invert && (part.is_piece || part.text.len() > LONG_LINE_BYTES) {
            self.add_matches(part, before, in_line);
        } else {
            self.add_line(part);
        }
    }

    fn context(&mut self, line: u64, text: &[u8]) {
        let before_first = self.matches < self.wanted.skip;
        if !self.full && !before_first {
            let text = line_excerpt(text, 0, LINE_BYTES);
            if self.takes(&text) {
                self.items.push(Row::Context { line, text });
            }
        }
    }

    fn gap(&mut self) {
        if self.full {
            return;
        }

        if self.shown > 0 {
            self.items.push(Row::Gap);
        } else {
            // Rows before this gap are context of skipped matches.
            self.items.clear();
            self.bytes = 0;
        }
    }

    fn in_pieces(&mut self) {
        self.in_pieces = true;
    }
}
