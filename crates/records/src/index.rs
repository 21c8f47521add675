//! [`RecordIndex`]: offsets of records, one every few kilobytes.

use serde::{Deserialize, Serialize};

use super::{Container, Layout, Pointer, Record, Scanner};

/// The initial distance of two marks, in bytes.
const SPACING: u64 = 4 << 10;
/// The maximum number of marks. When it is reached, every second one is dropped and the
/// distance doubles.
const MAX_MARKS: usize = 4096;

/// The start of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The number of the record.
    pub number: u64,
    /// The offset of its first byte.
    pub offset: u64,
}

/// The offsets of a content's records, one every few kilobytes. To read record N,
/// scan from [`RecordIndex::nearest`] with [`RecordIndex::scanner`].
///
/// Serialises to about six bytes for each mark, and to 32 KiB at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordIndex {
    layout: Layout,
    at: String,
    container: Container,
    total: u64,
    header: Option<(u64, u64)>,
    spacing: u64,
    #[serde(with = "packed")]
    marks: Vec<Mark>,
}

impl RecordIndex {
    /// An empty index of content in this layout; `at` points at the records, in JSON.
    pub fn new(layout: Layout, at: &Pointer) -> Self {
        Self {
            layout,
            at: at.to_string(),
            container: Container::List,
            total: 0,
            header: None,
            spacing: SPACING,
            marks: Vec::new(),
        }
    }

    /// An empty index of a JSON value of this kind.
    pub(super) fn of_json(container: Container) -> Self {
        Self { container, ..Self::new(Layout::Json, &Pointer::default()) }
    }

    /// Changes the pointer to the records.
    pub(super) fn moved_to(self, at: &Pointer) -> Self {
        Self { at: at.to_string(), ..self }
    }

    /// Adds the next record. Records come in their order.
    pub fn add(&mut self, record: Record) {
        self.add_start(record.start);
    }

    /// Adds the next record, which begins at this offset.
    pub(super) fn add_start(&mut self, start: u64) {
        let number = self.total;
        self.total += 1;
        if start >= self.next_mark() {
            self.mark(Mark { number, offset: start });
        }
    }

    /// Adds the records that begin at these bits after an offset.
    #[inline]
    pub(super) fn add_starts(&mut self, offset: u64, starts: u64) {
        if offset + u64::from(u64::BITS) <= self.next_mark() {
            self.total += u64::from(starts.count_ones());
        } else {
            self.add_due_starts(offset, starts);
        }
    }

    fn add_due_starts(&mut self, offset: u64, mut starts: u64) {
        while starts != 0 {
            let first = self.next_mark().saturating_sub(offset);
            let mask = u32::try_from(first).ok().and_then(|first| (!0_u64).checked_shl(first));
            let due = starts & mask.unwrap_or(0);
            let next = due & due.wrapping_neg();

            // Counts records before the next mark, or all of them if none is due.
            self.total += u64::from((starts & next.wrapping_sub(1)).count_ones());
            if next == 0 {
                return;
            }

            self.mark(Mark {
                number: self.total,
                offset: offset + u64::from(next.trailing_zeros()),
            });
            self.total += 1;
            starts = due & (due - 1);
        }
    }

    /// The offset from which the next record gets a mark.
    fn next_mark(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.offset + self.spacing)
    }

    /// Adds a mark, and drops every second one before if there are too many.
    fn mark(&mut self, mark: Mark) {
        if self.marks.len() == MAX_MARKS {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.spacing *= 2;
        }
        self.marks.push(mark);
    }

    /// Takes over container and header from a scanner that has finished.
    pub fn finish(&mut self, scanner: &Scanner) {
        self.container = scanner.container().unwrap_or(self.container);
        self.header = scanner.header().map(|header| (header.start, header.end));
    }

    /// The bytes that the index takes in memory, about.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.at.len() + self.marks.len() * size_of::<Mark>()) as u64
    }

    /// The number of records.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The JSON Pointer to the records.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// The kind of the JSON value that has the records.
    pub fn container(&self) -> Container {
        self.container
    }

    /// The boundaries of the header row.
    pub fn header(&self) -> Option<std::ops::Range<u64>> {
        self.header.map(|(start, end)| start..end)
    }

    /// The last mark that is not after the record; `None` if there is no such
    /// record.
    pub fn nearest(&self, number: u64) -> Option<Mark> {
        let after = self.marks.partition_point(|mark| mark.number <= number);
        let mark = self.marks[..after].last();
        mark.copied().filter(|_| number < self.total)
    }

    /// The last mark that is not after the offset; `None` if no record begins before it.
    pub fn nearest_to(&self, offset: u64) -> Option<Mark> {
        let after = self.marks.partition_point(|mark| mark.offset <= offset);
        self.marks[..after].last().copied()
    }

    /// The number of the first records that lie within the first bytes of the content.
    pub fn records_within(&self, head: &[u8]) -> u64 {
        let mut within = 0;
        let mut scanner = Scanner::new(self.layout, self.at.parse().unwrap_or_default());
        // The bytes may end within a value.
        let _ = scanner.feed(head, |record| within = record.number + 1);
        within
    }

    /// A scanner that continues at a mark. It gets the content from there.
    pub fn scanner(&self, mark: Mark) -> Scanner {
        Scanner::resume(self.layout, self.container, mark)
    }
}

/// Marks, serialised as differences in variable-length bytes.
mod packed {
    use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Mark, push_number, take_number};

    pub(super) fn serialize<S: Serializer>(
        marks: &[Mark],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(marks.len() * 4);
        let mut last = Mark::default();
        for mark in marks {
            push_number(&mut bytes, mark.number - last.number);
            push_number(&mut bytes, mark.offset - last.offset);
            last = *mark;
        }
        serializer.serialize_str(&BASE64_STANDARD_NO_PAD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Mark>, D::Error> {
        let text = String::deserialize(deserializer)?;
        unpack(&text).ok_or_else(|| D::Error::custom("the marks of a record index are damaged"))
    }

    fn unpack(text: &str) -> Option<Vec<Mark>> {
        let bytes = BASE64_STANDARD_NO_PAD.decode(text).ok()?;
        let mut rest = &bytes[..];
        let mut marks = Vec::new();
        let mut last = Mark::default();

        while !rest.is_empty() {
            last = Mark {
                number: last.number.checked_add(take_number(&mut rest)?)?,
                offset: last.offset.checked_add(take_number(&mut rest)?)?,
            };
            marks.push(last);
        }
        Some(marks)
    }
}

/// Appends a number, seven bits a byte, the lowest first (LEB128).
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7F) as u8);
}

/// Removes a number from the front; `None` if it is cut off or too long.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
