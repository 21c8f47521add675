//! Records as rows.

use larder_oauth::Owner;
use larder_protocol::json_size;
use larder_records::{Container, Dialect, Layout, Pointer, RecordIndex, RowParser};
use larder_store::store::{RecordWindow, RecordsError, StoredResource};
use serde::Serialize;
use serde_json::Deserializer;

use super::columns::{Cell, Column, TableRows, Type};
use crate::handler::ToolError;

/// The records that a description looks at.
const SAMPLED: u64 = 200;
/// The most bytes of records that are read for one part.
pub(super) const READ_BYTES: usize = 256 << 10;
/// The most bytes of one part, as JSON.
pub(super) const PART_BYTES: usize = 90_000;
/// The beginning of a record that is too long for a part, in bytes.
const EXCERPT_BYTES: usize = 300;
/// The columns of what is no object.
const KEY: &str = "key";
const VALUE: &str = "value";

/// The records of a table.
#[derive(Debug, Serialize)]
pub(super) struct Records {
    pub(super) total: u64,
    /// The JSON Pointer to them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) at: String,
    pub(super) columns: Vec<Column>,
}

/// Rows of a table.
#[derive(Debug, Default, Serialize)]
pub(super) struct RowWindow {
    /// The columns of these rows, in the order of their cells.
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The number of the first row, from 0.
    pub(super) offset: u64,
    /// The number of all rows; it is counted with the first rows of a filtered table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<u64>,
}

impl RowWindow {
    /// Drops what does not fit into one part. At least one row stays.
    pub(super) fn fit(mut self) -> Self {
        let mut bytes = json_size(&self.columns);
        let fitting = self.rows.iter().take_while(|row| {
            bytes += json_size(row) + 1;
            bytes <= PART_BYTES
        });
        let fitting = fitting.count().max(1);

        self.rows.truncate(fitting);
        self
    }
}

/// The number and the columns of the records, and whether they are a table: rows of CSV, lines
/// of NDJSON, or a list of objects. `None` if there are no records.
pub(super) async fn describe(
    caller: &Owner,
    found: &StoredResource,
) -> Result<Option<(Records, bool)>, ToolError> {
    let index = match found.record_index(caller, None).await {
        Ok(index) => index,
        Err(RecordsError::Store(error)) => return Err(error.into()),
        Err(_) => return Ok(None),
    };

    let sample = read(caller, found, &index, 0, SAMPLED).await?;
    let of_objects = !sample.columns.iter().any(|column| [KEY, VALUE].contains(&&*column.name));
    let is_table = match index.layout() {
        Layout::Json => {
            index.container() == Container::List && of_objects && !sample.rows.is_empty()
        }
        _ => true,
    };

    let at = index.at().to_owned();
    let records = Records { total: index.total(), at, columns: sample.columns };
    Ok(Some((records, is_table)))
}

/// Rows in their order.
pub(super) async fn window(
    caller: &Owner,
    found: &StoredResource,
    at: Option<&Pointer>,
    offset: u64,
    limit: u64,
) -> Result<RowWindow, ToolError> {
    let index = found.record_index(caller, at).await.map_err(|error| no_records(found, error))?;
    let rows = read(caller, found, &index, offset, limit).await?;
    Ok(RowWindow { total: Some(index.total()), ..rows })
}

/// Why there are no rows, for the page.
pub(super) fn no_records(found: &StoredResource, error: RecordsError) -> ToolError {
    match error {
        RecordsError::Store(error) => error.into(),
        error => ToolError::new(format!("{} cannot be shown so: {error}.", found.entry.uri)),
    }
}

async fn read(
    caller: &Owner,
    found: &StoredResource,
    index: &RecordIndex,
    offset: u64,
    limit: u64,
) -> Result<RowWindow, ToolError> {
    let window = found.records(caller, index, offset, limit, READ_BYTES).await;
    let window = window.map_err(|error| no_records(found, error))?;

    if let Some(start) = window.too_long {
        let part = found.bytes_from(start, EXCERPT_BYTES).await?;
        let text = format!("{}…", String::from_utf8_lossy(&part.bytes));
        let columns = vec![Column { name: VALUE.into(), r#type: Type::Text }];
        let rows = vec![vec![Some(text)]];
        return Ok(RowWindow { columns, rows, offset, ..RowWindow::default() });
    }

    let rows = match index.layout() {
        Layout::Rows(dialect) => delimited(&window, dialect),
        layout => objects(&window.text, layout, index.container()),
    };

    Ok(RowWindow { offset, ..rows.fit() })
}

fn delimited(window: &RecordWindow, dialect: Dialect) -> RowWindow {
    let mut header = RowParser::new(dialect);
    let names = window.header.as_deref().and_then(|row| header.fields(row));
    let mut table = TableRows::of_header(names.into_iter().flatten());

    let mut reader = dialect.reader().from_reader(&*window.text);
    for record in reader.records().filter_map(Result::ok) {
        table.add_fields(record.iter());
    }

    RowWindow::new(table)
}

/// A record on each line, as JSON.
fn objects(text: &[u8], layout: Layout, container: Container) -> RowWindow {
    let has_keys = layout == Layout::Json && container == Container::Object;
    let mut table = TableRows::default();

    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let record = if has_keys { inside(line) } else { line };
        table.add_json(&String::from_utf8_lossy(record), has_keys);
    }
    RowWindow::new(table)
}

impl RowWindow {
    fn new(table: TableRows) -> Self {
        let (columns, rows) = table.finish();
        Self { columns, rows, ..Self::default() }
    }
}

/// The text between the braces of an object that is on one line.
pub(super) fn inside(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"{").and_then(|line| line.strip_suffix(b"}")).unwrap_or(line)
}

/// The key and the value of `"key":value`.
pub(super) fn member(line: &[u8]) -> (Option<String>, &[u8]) {
    let mut keys = Deserializer::from_slice(line).into_iter::<String>();
    let Some(Ok(key)) = keys.next() else { return (None, line) };

    let rest = &line[keys.byte_offset()..];
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
    let start = rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len());
    (Some(key), &rest[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rows: &RowWindow) -> Vec<(&str, Type)> {
        rows.columns.iter().map(|column| (&*column.name, column.r#type)).collect()
    }

    #[test]
    fn objects_give_the_columns_in_the_order_in_which_they_come() {
        let text = b"{\"b\":1,\"a\":\"x\"}\n{\"a\":null,\"c\":[1]}\n7\n";
        let rows = objects(text, Layout::Json, Container::List);

        let expected = [("b", Type::Number), ("a", Type::Text), ("c", Type::Json)];
        assert_eq!(named(&rows)[..3], expected);
        assert_eq!(named(&rows)[3], ("value", Type::Number));
        assert_eq!(rows.rows[1], [None, None, Some("[1]".to_owned())]);
        assert_eq!(rows.rows[2][3].as_deref(), Some("7"));
    }

    #[test]
    fn members_have_their_key_as_a_column() {
        let rows = objects(b"{\"a \\\"b\\\"\":{\"n\":1}}\n", Layout::Json, Container::Object);
        assert_eq!(named(&rows), [("key", Type::Text), ("n", Type::Number)]);
        assert_eq!(rows.rows[0][0].as_deref(), Some("a \"b\""));
    }

    #[test]
    fn rows_of_csv_may_be_longer_than_the_header() {
        let window = RecordWindow {
            header: Some(b"id,name".as_slice().into()),
            text: b"1,\"a\nb\",x\n2\n".to_vec(),
            records: 0..2,
            too_long: None,
        };

        let rows = delimited(&window, Dialect::delimited(b','));

        assert_eq!(
            named(&rows),
            [("id", Type::Number), ("name", Type::Text), ("column_3", Type::Text)]
        );
        assert_eq!(rows.rows[0][1].as_deref(), Some("a\nb"));
        assert_eq!(rows.rows[1], [Some("2".to_owned())]);
    }

    #[test]
    fn a_part_is_at_most_as_large_as_an_answer() {
        let row = || vec![Some("x".repeat(500)); 100];
        let rows = RowWindow { rows: (0..20).map(|_| row()).collect(), ..RowWindow::default() };
        assert_eq!(rows.fit().rows.len(), 1);
    }
}
