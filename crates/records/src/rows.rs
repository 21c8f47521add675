//! The records of CSV and TSV: rows, whose quoted fields may contain line breaks.
//! Rows end by the rules of the csv crate.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

use super::{Dialect, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowState {
    /// In one of so many lines above the table. `after_return`: the last byte was a carriage
    /// return, so that a line feed ends no further line.
    Above {
        lines: u32,
        after_return: bool,
    },
    RowStart,
    /// In a line that is a comment.
    Comment,
    FieldStart,
    Field,
    Quoted,
    /// After an escape in a quoted field.
    Escaped,
    /// After a quote in a quoted field: its end, or half of an escaped quote.
    Quote,
}

/// Finds the rows of a table.
#[derive(Debug, Clone)]
pub(super) struct RowRecords {
    dialect: Dialect,
    state: RowState,
    /// The offset of the next byte.
    offset: u64,
    /// The start of the row.
    start: u64,
    /// Whether the next row is the header.
    at_header: bool,
    header: Option<Range<u64>>,
    number: u64,
}

impl RowRecords {
    pub(super) fn new(dialect: Dialect) -> Self {
        let state = match dialect.skip {
            0 => RowState::RowStart,
            lines => RowState::Above { lines, after_return: false },
        };
        Self { at_header: dialect.header, state, ..Self::resume(dialect, 0, 0) }
    }

    pub(super) fn resume(dialect: Dialect, number: u64, offset: u64) -> Self {
        Self {
            dialect,
            state: RowState::RowStart,
            offset,
            start: offset,
            at_header: false,
            header: None,
            number,
        }
    }

    pub(super) fn header(&self) -> Option<Range<u64>> {
        self.header.clone()
    }

    /// The start of the row, if it has begun.
    pub(super) fn open(&self) -> Option<u64> {
        let is_between =
            matches!(self.state, RowState::RowStart | RowState::Comment | RowState::Above { .. });
        (!is_between).then_some(self.start)
    }

    pub(super) fn is_within_quotes(&self) -> bool {
        matches!(self.state, RowState::Quoted | RowState::Escaped)
    }

    pub(super) fn feed(&mut self, block: &[u8], sink: &mut impl FnMut(Record)) {
        let mut at = 0;
        while at < block.len() {
            // Most bytes are passed over at once.
            let passed = match self.state {
                RowState::Field => self.pass_field(&block[at..]),
                RowState::Quoted => self.pass_quoted(&block[at..]),
                RowState::Comment => memchr(b'\n', &block[at..]).unwrap_or(block.len() - at),
                _ => 0,
            };
            at += passed;
            self.offset += passed as u64;

            if let Some(byte) = block.get(at) {
                self.step(*byte, sink);
                at += 1;
                self.offset += 1;
            }
        }
    }

    /// The number of bytes up to a quote, or to an escape.
    fn pass_quoted(&self, rest: &[u8]) -> usize {
        let quote = self.dialect.quote.unwrap_or(b'"');
        memchr2(quote, self.dialect.escape.unwrap_or(quote), rest).unwrap_or(rest.len())
    }

    /// The number of bytes up to a line break, or to a quote that begins a field.
    /// Delimiters before it only matter as the byte before a quote.
    fn pass_field(&mut self, rest: &[u8]) -> usize {
        let quote = self.dialect.quote.unwrap_or(b'\n');
        let mut from = 0;
        loop {
            let found = memchr3(quote, b'\n', b'\r', &rest[from..]);
            let end = found.map_or(rest.len(), |found| from + found);
            let after_delimiter = end > 0 && rest[end - 1] == self.dialect.delimiter;

            if after_delimiter {
                self.state = RowState::FieldStart;
            }
            let is_quote = rest.get(end).is_some_and(|byte| self.is_quote(*byte));
            if after_delimiter || !is_quote {
                return end;
            }

            // A quote within a field is a character of it.
            from = end + 1;
        }
    }

    fn step(&mut self, byte: u8, sink: &mut impl FnMut(Record)) {
        let is_break = matches!(byte, b'\n' | b'\r');

        match self.state {
            RowState::Above { lines, after_return } => self.pass_above(byte, lines, after_return),
            // Only a line feed ends a comment, as in the csv crate.
            RowState::Comment if byte == b'\n' => self.state = RowState::RowStart,
            RowState::RowStart if is_break => {}
            RowState::RowStart if self.offset < 3 && matches!(byte, 0xEF | 0xBB | 0xBF) => {}
            RowState::RowStart if self.dialect.comment == Some(byte) => {
                self.state = RowState::Comment;
            }
            RowState::RowStart => {
                self.start = self.offset;
                self.state = self.after_field_start(byte);
            }
            RowState::Quoted if self.is_quote(byte) => self.state = RowState::Quote,
            RowState::Quoted if self.dialect.escape == Some(byte) => {
                self.state = RowState::Escaped;
            }
            RowState::Quoted | RowState::Comment => {}
            RowState::Escaped => self.state = RowState::Quoted,
            RowState::Quote if self.is_quote(byte) => self.state = RowState::Quoted,
            _ if is_break => self.emit(sink),
            _ if byte == self.dialect.delimiter => self.state = RowState::FieldStart,
            RowState::FieldStart => self.state = self.after_field_start(byte),
            RowState::Field | RowState::Quote => self.state = RowState::Field,
        }
    }

    /// Passes over a byte above the table.
    fn pass_above(&mut self, byte: u8, lines: u32, after_return: bool) {
        let ends = byte == b'\r' || (byte == b'\n' && !after_return);
        let left = lines - u32::from(ends);
        self.state = match left {
            0 => RowState::RowStart,
            lines => RowState::Above { lines, after_return: byte == b'\r' },
        };
    }

    fn is_quote(&self, byte: u8) -> bool {
        self.dialect.quote == Some(byte)
    }

    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Record)) {
        if self.open().is_some() {
            self.emit(sink);
        }
    }

    fn after_field_start(&self, byte: u8) -> RowState {
        match byte {
            _ if self.is_quote(byte) => RowState::Quoted,
            _ if byte == self.dialect.delimiter => RowState::FieldStart,
            _ => RowState::Field,
        }
    }

    fn emit(&mut self, sink: &mut impl FnMut(Record)) {
        self.state = RowState::RowStart;
        if std::mem::take(&mut self.at_header) {
            self.header = Some(self.start..self.offset);
            return;
        }

        let start = self.start;
        sink(Record { number: self.number, start, value: start, end: self.offset });
        self.number += 1;
    }
}
