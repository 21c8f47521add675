//! The records of NDJSON and of logs: lines.

use memchr::memchr;

use super::Record;

/// Finds the records of content with one record on each line.
#[derive(Debug, Clone)]
pub(super) struct LineRecords {
    /// Whether lines with nothing but white space are records.
    keep_blank: bool,
    /// The offset of the next byte.
    offset: u64,
    /// The start of the line.
    start: u64,
    /// Whether the line has had anything but white space.
    has_text: bool,
    /// Whether the last byte was a carriage return.
    after_return: bool,
    number: u64,
}

impl LineRecords {
    pub(super) fn new(keep_blank: bool, number: u64, offset: u64) -> Self {
        Self { keep_blank, offset, start: offset, has_text: false, after_return: false, number }
    }

    /// The start of the line, if it has begun.
    pub(super) fn open(&self) -> Option<u64> {
        (self.offset > self.start).then_some(self.start)
    }

    pub(super) fn feed(&mut self, block: &[u8], sink: &mut impl FnMut(Record)) {
        let mut rest = block;
        while let Some(found) = memchr(b'\n', rest) {
            self.take(&rest[..found]);
            self.emit(sink);
            self.offset += 1;
            self.start = self.offset;
            rest = &rest[found + 1..];
        }
        self.take(rest);
    }

    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Record)) {
        if self.offset > self.start {
            self.emit(sink);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.has_text = self.has_text || bytes.iter().any(|b| !b.is_ascii_whitespace());
        if let Some(last) = bytes.last() {
            self.after_return = *last == b'\r';
        }
        self.offset += bytes.len() as u64;
    }

    fn emit(&mut self, sink: &mut impl FnMut(Record)) {
        if self.has_text || self.keep_blank {
            let end = self.offset - u64::from(self.after_return);
            sink(Record { number: self.number, start: self.start, value: self.start, end });
            self.number += 1;
        }

        self.has_text = false;
        self.after_return = false;
    }
}
