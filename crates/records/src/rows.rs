//! The records of CSV and TSV: rows, whose quoted fields may contain line breaks.
//! Rows end by the rules of the csv crate.

use std::ops::Range;

use memchr::{memchr, memchr3};

use super::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowState {
    RowStart,
    FieldStart,
    Field,
    Quoted,
    /// After a quote in a quoted field: its end, or half of an escaped quote.
    Quote,
}

/// Finds the rows of a table.
#[derive(Debug, Clone)]
pub(super) struct RowRecords {
    delimiter: u8,
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
    pub(super) fn new(delimiter: u8) -> Self {
        Self { at_header: true, ..Self::resume(delimiter, 0, 0) }
    }

    pub(super) fn resume(delimiter: u8, number: u64, offset: u64) -> Self {
        Self {
            delimiter,
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
        (self.state != RowState::RowStart).then_some(self.start)
    }

    pub(super) fn feed(&mut self, block: &[u8], sink: &mut impl FnMut(Record)) {
        let mut at = 0;
        while at < block.len() {
            // Most bytes are passed over at once.
            let passed = match self.state {
                RowState::Field => self.pass_field(&block[at..]),
                RowState::Quoted => memchr(b'"', &block[at..]).unwrap_or(block.len() - at),
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

    /// The number of bytes up to a line break, or to a quote that begins a field.
    /// Delimiters before it only matter as the byte before a quote.
    fn pass_field(&mut self, rest: &[u8]) -> usize {
        let mut from = 0;
        loop {
            let found = memchr3(b'"', b'\n', b'\r', &rest[from..]);
            let end = found.map_or(rest.len(), |found| from + found);
            let after_delimiter = end > 0 && rest[end - 1] == self.delimiter;

            if after_delimiter {
                self.state = RowState::FieldStart;
            }
            if after_delimiter || rest.get(end) != Some(&b'"') {
                return end;
            }

            // A quote within a field is a character of it.
            from = end + 1;
        }
    }

    fn step(&mut self, byte: u8, sink: &mut impl FnMut(Record)) {
        let is_break = matches!(byte, b'\n' | b'\r');

        match self.state {
            RowState::RowStart if is_break => {}
            RowState::RowStart if self.offset < 3 && matches!(byte, 0xEF | 0xBB | 0xBF) => {}
            RowState::RowStart => {
                self.start = self.offset;
                self.state = self.after_field_start(byte);
            }
            RowState::Quoted if byte == b'"' => self.state = RowState::Quote,
            RowState::Quoted => {}
            RowState::Quote if byte == b'"' => self.state = RowState::Quoted,
            _ if is_break => self.emit(sink),
            _ if byte == self.delimiter => self.state = RowState::FieldStart,
            RowState::FieldStart => self.state = self.after_field_start(byte),
            RowState::Field | RowState::Quote => self.state = RowState::Field,
        }
    }

    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Record)) {
        if self.state != RowState::RowStart {
            self.emit(sink);
        }
    }

    fn after_field_start(&self, byte: u8) -> RowState {
        match byte {
            b'"' => RowState::Quoted,
            _ if byte == self.delimiter => RowState::FieldStart,
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
