//! Rows of content, for tables and for jq: the fields of each record with their
//! columns.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use larder_protocol::quote::shortened;
use larder_records::{
    Dialect, Fault, Layout, Misfits, Pointer, Record, Splitter, TableOptions, repair_member,
    repair_value,
    typing::{ColumnNames, Field, RecordPart, record_parts},
    without_escapes,
};
use regex::Regex;

use super::{
    channel::{Channel, Content, Oddity},
    deadline::Deadline,
};
use crate::{QueryError, ReadCounts, Table, wire::Progress};

/// The maximum size of a record in bytes.
pub(super) const MAX_RECORD: usize = 64 << 20;
/// The number of rows between two checks of the deadline.
const CHECK_ROWS: u64 = 1_000;
/// The columns of each line of a log.
pub(super) const LINE_COLUMNS: [&str; 2] = ["line_no", "line"];

/// Receives the rows, field by field.
pub(super) trait Sink {
    /// Receives a field of the present row, which is the record with this number.
    fn field(&mut self, record: u64, column: usize, field: Field<'_>);
    /// The row is complete.
    fn end(&mut self, channel: &mut Channel) -> Result<(), QueryError>;
}

/// Reads all rows of a table's content. `total` is their number, if it is known.
pub(super) fn read(
    table: &Table,
    at: &Pointer,
    columns: &mut ColumnNames,
    content: &mut Content<'_>,
    deadline: &Deadline,
    total: Option<u64>,
    sink: &mut impl Sink,
) -> Result<ReadCounts, QueryError> {
    let counts = ReadCounts::default();
    let mut rows = Rows {
        table: &table.name,
        columns,
        deadline,
        total,
        counts,
        last_records: Vec::new(),
        repeats: false,
        sink,
    };

    match table.layout {
        Layout::Rows(dialect) => rows.read_csv(content, dialect, &table.options)?,
        Layout::Log => rows.read_log(content, table.pattern.as_deref())?,
        Layout::Json | Layout::JsonLines => rows.read_json(content, table.layout, at)?,
    }

    let bytes = content.bytes;
    Ok(ReadCounts { bytes, ..rows.counts })
}

/// The error of JSON without a value at the pointer of a table.
pub(super) fn no_value(table: &str, at: &Pointer) -> QueryError {
    let problem = format!("it has no value at {}", shortened(&at.to_string()));
    QueryError::Content { table: table.to_owned(), problem }
}

/// The error of a record that is not JSON and cannot be repaired, by its offset.
pub(super) fn broken(table: &str, number: u64) -> QueryError {
    let problem = format!("record {number} is not JSON");
    QueryError::Content { table: table.to_owned(), problem }
}

/// The error of content that has no such records.
pub(super) fn content_error(table: &str, fault: &Fault) -> QueryError {
    QueryError::Content { table: table.to_owned(), problem: fault.to_string() }
}

/// Reads the rows of one table into a sink.
struct Rows<'a, S> {
    table: &'a str,
    columns: &'a mut ColumnNames,
    deadline: &'a Deadline,
    total: Option<u64>,
    counts: ReadCounts,
    /// The last record that had each column, and whether the present one has a column twice.
    last_records: Vec<Option<u64>>,
    repeats: bool,
    sink: &'a mut S,
}

impl<S: Sink> Rows<'_, S> {
    fn end_row(&mut self, channel: &mut Channel) -> Result<(), QueryError> {
        self.sink.end(channel)?;
        self.counts.rows += 1;

        let progress = self.progress();
        if self.counts.rows.is_multiple_of(CHECK_ROWS) {
            self.deadline.check(progress)?;
        }
        channel.progress(progress)
    }

    fn progress(&self) -> Progress {
        Progress { read: self.counts.rows, total: self.total }
    }

    fn read_csv(
        &mut self,
        content: &mut Content<'_>,
        dialect: Dialect,
        options: &TableOptions,
    ) -> Result<(), QueryError> {
        content.skip_lines(dialect.skip)?;
        let mut reader = dialect.reader().from_reader(LastLine::new(&mut *content));
        let mut row = csv::StringRecord::new();
        let mut is_header = dialect.header;
        // Rows may add columns to those of the header.
        let mut width = None;
        let mut misfits = Misfits::default();
        let changes = options.change_fields();

        loop {
            match reader.read_record(&mut row) {
                Ok(true) => {}
                Ok(false) => {
                    reader.get_mut().inner.tell(misfits);
                    return Ok(());
                }
                Err(error) => {
                    return Err(match error.kind() {
                        csv::ErrorKind::Io(_) => reader.get_ref().inner.failure(),
                        _ => QueryError::Content {
                            table: self.table.to_owned(),
                            problem: error.to_string(),
                        },
                    });
                }
            }

            // The csv crate takes a comment without a line break, at the end, for an empty row.
            let is_empty = row.len() == 1 && row.get(0) == Some("");
            if is_empty && dialect.comment.is_some() && reader.get_ref().first == dialect.comment {
                continue;
            }

            if std::mem::take(&mut is_header) {
                if self.columns.is_empty() {
                    *self.columns = ColumnNames::of_header(&row);
                }
                width = Some(row.len());
                continue;
            }

            let width = *width.get_or_insert(row.len());
            misfits.add(self.counts.rows + 1, row.len(), width);

            for (column, text) in row.iter().enumerate() {
                if column == self.columns.len() {
                    self.columns.add("");
                }
                let field = if changes { options.field(text) } else { Cow::Borrowed(text) };
                self.sink.field(self.counts.rows, column, Field::Delimited(&field));
            }

            self.end_row(reader.get_mut().inner.channel())?;
        }
    }

    fn read_log(
        &mut self,
        content: &mut Content<'_>,
        pattern: Option<&str>,
    ) -> Result<(), QueryError> {
        let pattern = pattern.map(log_pattern).transpose()?;

        // The groups come after the columns that each line has.
        let groups: Vec<(usize, &str)> = pattern
            .iter()
            .flat_map(|pattern| pattern.capture_names().enumerate())
            .filter_map(|(group, name)| Some((group, name?)))
            .collect();
        if self.columns.is_empty() {
            let names = groups.iter().map(|(_, name)| *name);
            *self.columns = ColumnNames::of_header(LINE_COLUMNS.into_iter().chain(names));
        }

        self.split(content, Layout::Log, &Pointer::default(), |rows, bytes, record, channel| {
            let text = String::from_utf8_lossy(bytes);
            // Colours around words do not hide them.
            let plain = without_escapes(&text);
            // A line that the pattern does not match is no row.
            let found = match &pattern {
                None => None,
                Some(pattern) => match pattern.captures(&plain) {
                    Some(found) => Some(found),
                    None => {
                        rows.counts.skipped += 1;
                        return Ok(());
                    }
                },
            };

            let line_no = i64::try_from(record.number + 1).unwrap_or(i64::MAX);
            rows.sink.field(record.number, 0, Field::Number(line_no));
            rows.sink.field(record.number, 1, Field::Text(&text));

            for (index, (group, _)) in groups.iter().enumerate() {
                let found = found.as_ref().and_then(|found| found.get(*group));
                if let Some(found) = found {
                    let column = LINE_COLUMNS.len() + index;
                    rows.sink.field(record.number, column, Field::Delimited(found.as_str()));
                }
            }

            rows.end_row(channel)
        })
    }

    fn read_json(
        &mut self,
        content: &mut Content<'_>,
        layout: Layout,
        at: &Pointer,
    ) -> Result<(), QueryError> {
        self.split(content, layout, at, |rows, bytes, record, channel| {
            let is_member = record.value > record.start;
            let text = std::str::from_utf8(bytes).ok();
            if text.is_some_and(|text| rows.parts(record.number, text, is_member)) {
                rows.tell_repeats(record.number, channel);
                return rows.end_row(channel);
            }

            let repaired = if is_member { repair_member(bytes) } else { repair_value(bytes) };
            let repaired = repaired.and_then(|json| String::from_utf8(json).ok());
            if repaired.is_some_and(|text| rows.parts(record.number, &text, is_member)) {
                channel.tell(Oddity::Repaired, record.number);
                rows.tell_repeats(record.number, channel);
                return rows.end_row(channel);
            }
            rows.skip(layout, record)
        })
    }

    /// Gives the parts of a record to the sink. Returns whether it is JSON.
    fn parts(&mut self, record: u64, text: &str, is_member: bool) -> bool {
        let Rows { columns, sink, last_records, repeats, .. } = self;
        let mut each = |part: RecordPart<'_>, field: Field<'_>| {
            let column = columns.of_part(part);
            if column >= last_records.len() {
                last_records.resize(column + 1, None);
            }
            *repeats |= last_records[column].replace(record) == Some(record);
            sink.field(record, column, field);
        };
        record_parts(text, is_member, &mut each).is_ok()
    }

    /// Notes that a record has a key more than once.
    fn tell_repeats(&mut self, record: u64, channel: &mut Channel) {
        if std::mem::take(&mut self.repeats) {
            channel.tell(Oddity::RepeatedKey, record);
        }
    }

    /// Counts a line that is not JSON; in one JSON value that is an error.
    fn skip(&mut self, layout: Layout, record: Record) -> Result<(), QueryError> {
        if layout == Layout::JsonLines {
            self.counts.skipped += 1;
            return Ok(());
        }
        Err(broken(self.table, record.number))
    }

    /// Calls `each` with the bytes and the place of each record.
    fn split(
        &mut self,
        content: &mut Content<'_>,
        layout: Layout,
        at: &Pointer,
        mut each: impl FnMut(&mut Self, &[u8], Record, &mut Channel) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut splitter = Splitter::new(layout, at.clone(), MAX_RECORD);
        let table = self.table;
        let mut result = Ok(());

        content.blocks(|block, content| {
            let fed = splitter.feed(block, |record, bytes| {
                if result.is_ok() {
                    result = each(self, bytes, record, content.channel());
                }
            });

            std::mem::replace(&mut result, Ok(()))?;
            fed.map_err(|fault| content_error(table, &fault))?;
            self.deadline.check(self.progress())
        })?;

        let finished = splitter.finish(|record, bytes| {
            if result.is_ok() {
                result = each(self, bytes, record, content.channel());
            }
        });
        result?;
        finished.map_err(|fault| content_error(table, &fault))?;

        if layout == Layout::Json && splitter.scanner().container().is_none() {
            return Err(no_value(table, at));
        }
        Ok(())
    }
}

/// Content, with the first byte of the line in which the read bytes end.
struct LastLine<R> {
    inner: R,
    first: Option<u8>,
}

impl<R: Read> LastLine<R> {
    fn new(inner: R) -> Self {
        Self { inner, first: None }
    }
}

impl<R: Read> Read for LastLine<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(to)?;
        let read = &to[..length];
        match read.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => self.first = read.get(at + 1).copied(),
            None => self.first = self.first.or_else(|| read.first().copied()),
        }
        Ok(length)
    }
}

/// A regular expression for the lines of a log.
pub(super) fn log_pattern(pattern: &str) -> Result<Regex, QueryError> {
    Regex::new(pattern).map_err(|error| {
        let problem = regex_problem(&error);
        QueryError::Refused(format!("pattern is not a valid regular expression: {problem}."))
    })
}

/// Why a regular expression is invalid, without the expression itself.
pub(super) fn regex_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    shortened(last.trim_start_matches("error: ").trim_end_matches('.')).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn errors_quote_a_part_of_what_was_sent() {
        let long = "x".repeat(10_000);

        let pattern = log_pattern(&format!("({long}")).unwrap_err().to_string();
        assert_eq!(pattern, "pattern is not a valid regular expression: unclosed group.");

        let pointer = no_value("t", &format!("/{long}").parse().unwrap()).to_string();
        assert!(pointer.starts_with("t: it has no value at /xxx"), "{pointer}");
        assert!(pointer.len() < 200, "{pointer}");
    }
}
