//! The records of CSV and TSV: rows, whose quoted fields may contain line breaks.
//! The rules are those of the csv crate.

use std::ops::Range;

use super::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    RowStart,
    FieldStart,
    Field,
    Quoted,
    /// After a quote in a quoted field: the end of it, or half of an escaped one.
    Quote,
}

#[derive(Debug, Clone)]
pub(super) struct RowRecords {
    delimiter: u8,
    state: State,
    offset: u64,
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
            state: State::RowStart,
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

    pub(super) fn open(&self) -> Option<u64> {
        (self.state != State::RowStart).then_some(self.start)
    }

    pub(super) fn feed(&mut self, block: &[u8], sink: &mut impl FnMut(Record)) {
        for byte in block {
            let is_break = matches!(byte, b'\n' | b'\r');
            match self.state {
                State::RowStart if is_break => {}
                State::RowStart if self.offset < 3 && matches!(byte, 0xEF | 0xBB | 0xBF) => {}
                State::RowStart => {
                    self.start = self.offset;
                    self.state = self.after_field_start(*byte);
                }
                State::Quoted if *byte == b'"' => self.state = State::Quote,
                State::Quoted => {}
                State::Quote if *byte == b'"' => self.state = State::Quoted,
                _ if is_break => self.emit(sink),
                _ if *byte == self.delimiter => self.state = State::FieldStart,
                State::FieldStart => self.state = self.after_field_start(*byte),
                State::Field | State::Quote => self.state = State::Field,
            }
            self.offset += 1;
        }
    }

    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Record)) {
        if self.state != State::RowStart {
            self.emit(sink);
        }
    }

    fn after_field_start(&self, byte: u8) -> State {
        match byte {
            b'"' => State::Quoted,
            _ if byte == self.delimiter => State::FieldStart,
            _ => State::Field,
        }
    }

    fn emit(&mut self, sink: &mut impl FnMut(Record)) {
        self.state = State::RowStart;
        if std::mem::take(&mut self.at_header) {
            self.header = Some(self.start..self.offset);
            return;
        }
        let (number, start) = (self.number, self.start);
        sink(Record { number, start, value: start, end: self.offset });
        self.number += 1;
    }
}
