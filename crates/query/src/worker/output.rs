//! Results: the rows that are returned, and the bytes that are stored.

use std::fmt::Write;

use larder_protocol::quote::shortened;
use larder_records::{
    notes::{Note, NoteKind, Notes},
    typing::ColumnNames,
    words::cut,
};
use rusqlite::{Row, types::ValueRef};
use serde_json::{Map, Value};

use super::channel::Channel;
use crate::{Answer, Column, QueryError, Question, ReadCounts, ResultFormat};

/// Stored bytes are sent in parts of about this size.
const PART_BYTES: usize = 128 << 10;

/// The window of the result that is returned, as text and as values.
pub(super) struct ReturnedWindow<'a> {
    question: &'a Question,
    rows: Vec<Vec<Value>>,
    text: String,
    head_bytes: usize,
    total: u64,
    /// Whether no further row is added.
    full: bool,
    /// Whether the only row is cut.
    cut: bool,
}

impl<'a> ReturnedWindow<'a> {
    /// A window whose text begins with a header.
    pub(super) fn new(question: &'a Question, head: String) -> Self {
        let head_bytes = head.len();
        Self {
            question,
            rows: Vec::new(),
            text: head,
            head_bytes,
            total: 0,
            full: false,
            cut: false,
        }
    }

    /// Counts the next row, and says whether it is to be added.
    pub(super) fn next(&mut self) -> bool {
        self.total += 1;
        let offset = self.question.offset;
        self.full |= self.total > offset.saturating_add(self.question.limit);
        self.total > offset && !self.full
    }

    /// Adds the row that was counted last, if it fits.
    pub(super) fn add(&mut self, line: &str, row: impl FnOnce() -> Vec<Value>) {
        let room = self.question.text_bytes.saturating_sub(self.text.len());
        if line.len() > room {
            self.full = true;

            // A result has at least a part of one row, or the next call would return nothing
            // either.
            if self.rows.is_empty() {
                self.text.push_str(cut(line, room));
                self.text.push_str("…\n");
                self.rows.push(vec![Value::from(&self.text[self.head_bytes..])]);
                self.cut = true;
            }
            return;
        }

        self.text.push_str(line);
        self.rows.push(row());
    }

    pub(super) fn finish(self, columns: Vec<Column>, read: ReadCounts) -> Answer {
        let Self { rows, text, total, cut, .. } = self;
        let notes = Notes::default();
        Answer { columns, rows, text, total, cut, read, places: Vec::new(), notes }
    }
}

/// The stored result, which is sent in parts while it is made.
pub(super) struct StoredResult {
    format: ResultFormat,
    part: Vec<u8>,
    sent: u64,
    limit: u64,
    /// Whether it has a row.
    any: bool,
}

impl StoredResult {
    pub(super) fn new(question: &Question, format: ResultFormat) -> Self {
        let mut part = Vec::new();
        if format == ResultFormat::Json {
            part.push(b'[');
        }
        Self { format, part, sent: 0, limit: question.result_bytes, any: false }
    }

    pub(super) fn format(&self) -> ResultFormat {
        self.format
    }

    /// Adds a line or a JSON value, without a line break.
    pub(super) fn add(&mut self, text: &[u8], channel: &mut Channel) -> Result<(), QueryError> {
        if self.format == ResultFormat::Json {
            self.part.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        }

        self.any = true;
        self.part.extend_from_slice(text);
        if self.format != ResultFormat::Json {
            self.part.push(b'\n');
        }

        if self.part.len() >= PART_BYTES { self.send(channel) } else { Ok(()) }
    }

    pub(super) fn finish(mut self, channel: &mut Channel) -> Result<(), QueryError> {
        if self.format == ResultFormat::Json {
            self.part.extend_from_slice(if self.any { b"\n]\n" } else { b"]\n" });
        }
        self.send(channel)
    }

    fn send(&mut self, channel: &mut Channel) -> Result<(), QueryError> {
        self.sent += self.part.len() as u64;
        if self.sent > self.limit {
            return Err(QueryError::Result { bytes: self.limit });
        }

        for part in self.part.chunks(1 << 20) {
            channel.store(part)?;
        }
        self.part.clear();
        Ok(())
    }
}

/// Writes the rows of a result of SQL to the window and the stored result.
pub(super) struct RowWriter<'a> {
    /// The names of the columns, each a different one.
    names: Vec<String>,
    kinds: Vec<&'static str>,
    notes: Notes,
    window: ReturnedWindow<'a>,
    stored: Option<StoredResult>,
    channel: &'a mut Channel,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(
        written: &[String],
        question: &'a Question,
        channel: &'a mut Channel,
    ) -> Result<Self, QueryError> {
        let columns = ColumnNames::of_header(written.iter().map(String::as_str));
        let names = columns.names().to_vec();
        let head = csv_line(names.iter().map(|name| Value::from(&**name)));
        let mut stored = question.store.map(|format| StoredResult::new(question, format));
        if let Some(stored) = stored.as_mut().filter(|s| s.format() == ResultFormat::Csv) {
            stored.add(head.trim_end_matches('\n').as_bytes(), channel)?;
        }

        let kinds = vec!["null"; names.len()];
        let window = ReturnedWindow::new(question, head);
        Ok(Self { names, kinds, notes: renamed(&columns), window, stored, channel })
    }

    pub(super) fn row(&mut self, row: &Row<'_>) -> Result<(), QueryError> {
        let shown = self.window.next();
        if !shown && self.stored.is_none() {
            return Ok(());
        }

        let mut values = Vec::with_capacity(self.names.len());
        for index in 0..self.names.len() {
            let value = row.get_ref(index).map_err(|_| QueryError::Failed)?;
            if shown {
                self.kinds[index] = common_kind(self.kinds[index], value);
            }
            values.push(json(value));
        }

        let line = csv_line(values.iter().cloned());
        if let Some(stored) = &mut self.stored {
            if stored.format() == ResultFormat::Csv {
                stored.add(line.trim_end_matches('\n').as_bytes(), self.channel)?;
            } else {
                let members = self.names.iter().cloned().zip(values.iter().cloned());
                let object = Value::Object(members.collect::<Map<_, _>>()).to_string();
                stored.add(object.as_bytes(), self.channel)?;
            }
        }

        if shown {
            self.window.add(&line, || values);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Answer, QueryError> {
        if let Some(stored) = self.stored {
            stored.finish(self.channel)?;
        }

        let columns = self.names.into_iter().zip(self.kinds);
        let columns = columns.map(|(name, kind)| Column { name, kind: kind.into() });
        let answer = self.window.finish(columns.collect(), ReadCounts::default());
        Ok(Answer { notes: self.notes, ..answer })
    }
}

/// The notes about columns of a result that have the name of another one.
fn renamed(columns: &ColumnNames) -> Notes {
    let mut notes = Notes::default();
    for renamed in columns.renamed() {
        let name = columns.names()[renamed.column].clone();
        let written = shortened(&renamed.written).into_owned();
        let text = format!("a further column {written} of the result");
        let kind = NoteKind::Renamed;
        let column = Some(name);
        notes.add(Note { kind, table: None, column, count: 1, first: None, text });
    }
    notes
}

/// The type of a column of this type with one more value.
fn common_kind(kind: &'static str, value: ValueRef<'_>) -> &'static str {
    let next = match value {
        ValueRef::Null => return kind,
        ValueRef::Integer(_) => "integer",
        ValueRef::Real(_) => "number",
        ValueRef::Text(_) | ValueRef::Blob(_) => "text",
    };

    match kind {
        "null" => next,
        _ if kind == next => kind,
        "integer" | "number" if next != "text" => "number",
        _ => "any",
    }
}

/// A value in JSON. What JSON does not have (infinity, bytes) is text.
fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) if number.is_finite() => number.into(),
        ValueRef::Real(number) => number.to_string().into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => {
            bytes
                .iter()
                .fold(String::new(), |mut text, byte| {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{byte:02X}");
                    text
                })
                .into()
        }
    }
}

/// A row of CSV. Null is empty, and an empty text is quoted.
fn csv_line(values: impl Iterator<Item = Value>) -> String {
    let mut line = String::new();
    for (index, value) in values.enumerate() {
        if index > 0 {
            line.push(',');
        }

        match value {
            Value::Null => {}
            Value::String(text) => {
                let is_plain = !text.is_empty()
                    && !text.contains([',', '"', '\n', '\r'])
                    && !text.starts_with(' ')
                    && !text.ends_with(' ');
                if is_plain {
                    line.push_str(&text);
                } else {
                    line.push('"');
                    line.push_str(&text.replace('"', "\"\""));
                    line.push('"');
                }
            }
            other => line.push_str(&other.to_string()),
        }
    }

    // An empty line would be no row.
    if line.is_empty() {
        line.push_str("\"\"");
    }
    line.push('\n');
    line
}
