//! [`Scanner`]: the boundaries of records, for every layout.

use std::ops::Range;

use super::{
    Container, Fault, Layout, Mark, Pointer, Record, json::JsonRecords, lines::LineRecords,
    rows::RowRecords,
};

/// Finds the boundaries of records in content that comes in blocks.
///
/// ```
/// use larder_records::{Layout, Pointer, Scanner};
///
/// let mut scanner = Scanner::new(Layout::Json, Pointer::default());
/// let mut starts = Vec::new();
/// for block in [&b"[{\"a\": 1}, "[..], b"{\"a\": 2}]"] {
///     scanner.feed(block, |record| starts.push(record.start))?;
/// }
/// scanner.finish(|record| starts.push(record.start))?;
/// assert_eq!(starts, [1, 11]);
/// # Ok::<(), larder_records::Fault>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scanner(RecordScan);

#[derive(Debug, Clone)]
enum RecordScan {
    Json(Box<JsonRecords>),
    Lines(LineRecords),
    Rows(RowRecords),
}

impl Scanner {
    /// A scanner from the start of the content. `at` points at the list or the
    /// object that has the records; other layouts than JSON ignore it.
    pub fn new(layout: Layout, at: Pointer) -> Self {
        Self(match layout {
            Layout::Json => RecordScan::Json(Box::new(JsonRecords::new(at))),
            Layout::JsonLines => RecordScan::Lines(LineRecords::new(false, 0, 0)),
            Layout::Log => RecordScan::Lines(LineRecords::new(true, 0, 0)),
            Layout::Rows(dialect) => RecordScan::Rows(RowRecords::new(dialect)),
        })
    }

    /// A scanner that continues at the start of a record. `container` is the
    /// value that has the records, in JSON.
    pub fn resume(layout: Layout, container: Container, at: Mark) -> Self {
        let Mark { number, offset } = at;
        Self(match layout {
            Layout::Json => {
                RecordScan::Json(Box::new(JsonRecords::resume(container, number, offset)))
            }
            Layout::JsonLines => RecordScan::Lines(LineRecords::new(false, number, offset)),
            Layout::Log => RecordScan::Lines(LineRecords::new(true, number, offset)),
            Layout::Rows(dialect) => RecordScan::Rows(RowRecords::resume(dialect, number, offset)),
        })
    }

    /// Scans the next block. Calls `sink` with each record that ends in it.
    ///
    /// # Errors
    /// The content is not JSON, or is nested too deeply.
    pub fn feed(&mut self, block: &[u8], mut sink: impl FnMut(Record)) -> Result<(), Fault> {
        match &mut self.0 {
            RecordScan::Json(records) => records.feed(block, &mut sink)?,
            RecordScan::Lines(records) => records.feed(block, &mut sink),
            RecordScan::Rows(records) => records.feed(block, &mut sink),
        }
        Ok(())
    }

    /// Ends the content. Calls `sink` with a last record that has no line break.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish(&mut self, mut sink: impl FnMut(Record)) -> Result<(), Fault> {
        match &mut self.0 {
            RecordScan::Json(records) => records.finish(&mut sink)?,
            RecordScan::Lines(records) => records.finish(&mut sink),
            RecordScan::Rows(records) => records.finish(&mut sink),
        }
        Ok(())
    }

    /// The start of the record that has begun and not ended.
    pub fn open_record(&self) -> Option<u64> {
        match &self.0 {
            RecordScan::Json(records) => records.open(),
            RecordScan::Lines(records) => records.open(),
            RecordScan::Rows(records) => records.open(),
        }
    }

    /// Whether the content so far ends within a quoted field of a table.
    pub fn is_within_quotes(&self) -> bool {
        match &self.0 {
            RecordScan::Rows(records) => records.is_within_quotes(),
            _ => false,
        }
    }

    /// The kind of the JSON value that has the records; `None` until it is found,
    /// and in other layouts.
    pub fn container(&self) -> Option<Container> {
        match &self.0 {
            RecordScan::Json(records) => records.container(),
            _ => None,
        }
    }

    /// The boundaries of the header row, once it is complete.
    pub fn header(&self) -> Option<Range<u64>> {
        match &self.0 {
            RecordScan::Rows(records) => records.header(),
            _ => None,
        }
    }
}
