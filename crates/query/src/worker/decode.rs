//! Rows of content, for tables and for jq: the fields of each record with their
//! columns.

use std::{borrow::Cow, collections::HashMap, fmt};

use larder_protocol::quote::shortened;
use larder_records::{Fault, Layout, Pointer, Splitter};
use regex::Regex;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    channel::{Channel, Content},
    deadline::Deadline,
};
use crate::{QueryError, ReadCounts, Table, cell::Field, wire::Progress};

/// The maximum size of a record in bytes.
pub(super) const MAX_RECORD: usize = 64 << 20;
/// The number of rows between two checks of the deadline.
const CHECK_ROWS: u64 = 1_000;
/// The name of the only column of records that are no objects.
const VALUE: &str = "value";

/// The columns of a table, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    /// The columns by their name in SQL, in lower case: SQL does not distinguish case.
    by_name: HashMap<String, usize>,
    /// The columns by their exact name in the content.
    by_key: HashMap<String, usize>,
}

impl Columns {
    /// The columns of a table without rows.
    pub(super) fn value() -> Self {
        let mut columns = Self::default();
        columns.of_key(VALUE);
        columns
    }

    /// The column of a member.
    fn of_key(&mut self, key: &str) -> usize {
        if let Some(column) = self.by_key.get(key) {
            return *column;
        }

        let column = self.add(key);
        self.by_key.insert(key.to_owned(), column);
        column
    }

    /// Adds a column; with a number, where the name is taken or missing.
    fn add(&mut self, name: &str) -> usize {
        let column = self.names.len();
        let base = match name.trim() {
            "" => format!("column_{}", column + 1),
            name => name.replace('\0', "\u{fffd}"),
        };

        let mut name = base.clone();
        let mut number = 2;
        while self.by_name.contains_key(&name.to_lowercase()) {
            name = format!("{base}_{number}");
            number += 1;
        }

        self.by_name.insert(name.to_lowercase(), column);
        self.names.push(name);
        column
    }
}

/// Receives the rows, field by field.
pub(super) trait Sink {
    /// Receives a field of the present row.
    fn field(&mut self, column: usize, field: Field<'_>);
    /// The row is complete. `columns` are those of the table so far.
    fn end(&mut self, columns: &Columns, channel: &mut Channel) -> Result<(), QueryError>;
}

/// Reads all rows of a table's content. `total` is their number, if it is known.
pub(super) fn read(
    table: &Table,
    at: &Pointer,
    columns: &mut Columns,
    content: &mut Content<'_>,
    deadline: &Deadline,
    total: Option<u64>,
    sink: &mut impl Sink,
) -> Result<ReadCounts, QueryError> {
    let counts = ReadCounts::default();
    let mut rows = Rows { table: &table.name, columns, deadline, total, counts, sink };

    match table.layout {
        Layout::Rows { delimiter } => rows.read_csv(content, delimiter)?,
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

/// The error of content that has no such records.
pub(super) fn content_error(table: &str, fault: &Fault) -> QueryError {
    QueryError::Content { table: table.to_owned(), problem: fault.to_string() }
}

/// Reads the rows of one table into a sink.
struct Rows<'a, S> {
    table: &'a str,
    columns: &'a mut Columns,
    deadline: &'a Deadline,
    total: Option<u64>,
    counts: ReadCounts,
    sink: &'a mut S,
}

impl<S: Sink> Rows<'_, S> {
    fn end_row(&mut self, channel: &mut Channel) -> Result<(), QueryError> {
        self.sink.end(self.columns, channel)?;
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

    fn read_csv(&mut self, content: &mut Content<'_>, delimiter: u8) -> Result<(), QueryError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(&mut *content);
        let mut row = csv::StringRecord::new();
        let mut of_field: Vec<usize> = Vec::new();
        let mut is_header = true;

        loop {
            match reader.read_record(&mut row) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    return Err(match error.kind() {
                        csv::ErrorKind::Io(_) => QueryError::Failed,
                        _ => QueryError::Content {
                            table: self.table.to_owned(),
                            problem: error.to_string(),
                        },
                    });
                }
            }

            if std::mem::take(&mut is_header) {
                of_field = match self.columns.names.len() {
                    0 => row.iter().map(|name| self.columns.add(name)).collect(),
                    known => (0..known).collect(),
                };
                continue;
            }

            for (index, text) in row.iter().enumerate() {
                if index == of_field.len() {
                    of_field.push(self.columns.add(""));
                }
                self.sink.field(of_field[index], Field::Csv(text));
            }

            self.end_row(reader.get_mut().channel())?;
        }
    }

    fn read_log(
        &mut self,
        content: &mut Content<'_>,
        pattern: Option<&str>,
    ) -> Result<(), QueryError> {
        let pattern = pattern.map(log_pattern).transpose()?;

        let number = self.columns.of_key("line_no");
        let line = self.columns.of_key("line");
        let groups: Vec<_> = pattern
            .iter()
            .flat_map(|pattern| pattern.capture_names().enumerate())
            .filter_map(|(group, name)| Some((group, self.columns.of_key(name?))))
            .collect();

        self.split(content, Layout::Log, &Pointer::default(), |rows, bytes, _, channel| {
            let text = String::from_utf8_lossy(bytes);
            let line_no = i64::try_from(rows.counts.rows + 1).unwrap_or(i64::MAX);

            rows.sink.field(number, Field::Number(line_no));
            rows.sink.field(line, Field::Text(&text));

            if let Some(found) = pattern.as_ref().and_then(|pattern| pattern.captures(&text)) {
                for (group, column) in &groups {
                    if let Some(found) = found.get(*group) {
                        rows.sink.field(*column, Field::Csv(found.as_str()));
                    }
                }
            } else if pattern.is_some() {
                rows.counts.skipped += 1;
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
        self.split(content, layout, at, |rows, bytes, member, channel| {
            let Ok(text) = std::str::from_utf8(bytes) else { return rows.skip(layout) };
            let read = if member {
                rows.member(text)
            } else {
                rows.value(text, layout == Layout::JsonLines)
            };

            match read {
                Ok(()) => rows.end_row(channel),
                Err(_) => rows.skip(layout),
            }
        })
    }

    /// Counts a line that is not JSON; in one JSON value that is an error.
    fn skip(&mut self, layout: Layout) -> Result<(), QueryError> {
        if layout == Layout::JsonLines {
            self.counts.skipped += 1;
            return Ok(());
        }

        let problem = format!("record {} is not JSON", self.counts.rows);
        Err(QueryError::Content { table: self.table.to_owned(), problem })
    }

    /// Calls `each` with the bytes of each record, and whether it is a member.
    fn split(
        &mut self,
        content: &mut Content<'_>,
        layout: Layout,
        at: &Pointer,
        mut each: impl FnMut(&mut Self, &[u8], bool, &mut Channel) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut splitter = Splitter::new(layout, at.clone(), MAX_RECORD);
        let table = self.table;
        let mut result = Ok(());

        content.blocks(|block, content| {
            let fed = splitter.feed(block, |record, bytes| {
                if result.is_ok() {
                    result = each(self, bytes, record.value > record.start, content.channel());
                }
            });

            std::mem::replace(&mut result, Ok(()))?;
            fed.map_err(|fault| content_error(table, &fault))?;
            self.deadline.check(self.progress())
        })?;

        let finished = splitter.finish(|record, bytes| {
            if result.is_ok() {
                result = each(self, bytes, record.value > record.start, content.channel());
            }
        });
        result?;
        finished.map_err(|fault| content_error(table, &fault))?;

        if layout == Layout::Json && splitter.scanner().container().is_none() {
            return Err(no_value(table, at));
        }
        Ok(())
    }

    /// A member of an object: its key, and the members of its value.
    fn member(&mut self, text: &str) -> serde_json::Result<()> {
        let mut keys = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let key = match keys.next() {
            Some(key) => key?,
            None => return Err(serde::de::Error::custom("it has no key")),
        };

        let after = &text[keys.byte_offset()..];
        let value = after.trim_start().strip_prefix(':').unwrap_or_default();

        let column = self.columns.of_key("key");
        self.sink.field(column, Field::Text(&key));
        self.value(value.trim_start(), false)
    }

    /// A JSON value: the members of an object, or one column. `check`: it may be malformed.
    fn value(&mut self, text: &str, check: bool) -> serde_json::Result<()> {
        if text.starts_with('{') {
            if check {
                // A row that fails in its middle would leave fields behind.
                serde_json::from_str::<&RawValue>(text)?;
            }

            let mut json = serde_json::Deserializer::from_str(text);
            return Members { columns: self.columns, sink: self.sink }.deserialize(&mut json);
        }

        let value: &RawValue = serde_json::from_str(text)?;
        let column = self.columns.of_key(VALUE);
        self.sink.field(column, Field::Json(value.get()));
        Ok(())
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

/// Gives the members of an object to a sink.
struct Members<'a, S> {
    columns: &'a mut Columns,
    sink: &'a mut S,
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, S: Sink> DeserializeSeed<'de> for Members<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Members<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = members.next_key()? {
            let value: &RawValue = members.next_value()?;
            let column = self.columns.of_key(&key);
            self.sink.field(column, Field::Json(value.get()));
        }
        Ok(())
    }
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
