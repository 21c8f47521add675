//! JSON with the names of columns and lists of values apart, as databases send it, as a record on
//! each line.

use serde_json::{Map, Value, value::RawValue};

use super::{
    Dialect, Layout,
    loose::Converted,
    notes::{Note, NoteKind},
    typing::ColumnNames,
};

/// The most bytes that rows may become, and how many times the size of their JSON.
const MAX_BYTES: usize = 64 << 20;
const MAX_GROWTH: usize = 64;

/// The names of the list of columns, in lower case.
const COLUMNS: [&str; 9] = [
    "columns",
    "cols",
    "fields",
    "headers",
    "header",
    "columnnames",
    "column_names",
    "rowtype",
    "schema",
];
/// The names of the list of rows.
const ROWS: [&str; 8] =
    ["rows", "data", "values", "records", "results", "result", "dataarray", "data_array"];
/// The objects around them are searched to this depth.
const MAX_DEPTH: usize = 3;

/// Whether JSON seems to have columns and rows apart, judging by its beginning.
pub(crate) fn seems_so(head: &[u8]) -> bool {
    let text = &head[..head.len().min(64 << 10)];
    if !text.trim_ascii_start().starts_with(b"{") && !text.starts_with(b"\xEF\xBB\xBF{") {
        return false;
    }

    let lower = text.to_ascii_lowercase();
    let has = |names: &[&str]| {
        names.iter().any(|name| {
            let quoted = format!("\"{name}\"");
            memchr::memmem::find(&lower, quoted.as_bytes()).is_some()
        })
    };
    has(&COLUMNS) && has(&ROWS)
}

/// The rows as objects, one on each line; `None` if the JSON has no columns and rows apart, or if
/// they would be too large, because each row repeats the names.
pub(crate) fn convert(json: &[u8]) -> Option<Converted> {
    let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
    let root: Members<'_> = serde_json::from_slice(json).ok()?;
    let (written, rows, at) = find(&root, MAX_DEPTH)?;
    // A column that follows one of the same name has a name of its own.
    let columns = ColumnNames::of_header(written.iter().map(String::as_str));
    if rows.is_empty() {
        return empty(&columns, &at);
    }
    let names: Vec<_> = columns.names().iter().map(|name| quoted(name)).collect();

    let most = MAX_GROWTH.saturating_mul(json.len()).min(MAX_BYTES.max(json.len()));
    let mut bytes = Vec::with_capacity(json.len());
    let mut count = 0_u64;
    let mut ragged = 0_u64;
    let mut first = None;
    for row in rows {
        let cells = cells(row)?;
        if cells.len() != names.len() {
            ragged += 1;
            first.get_or_insert(count);
        }

        write_row(&mut bytes, &names, &cells, most)?;
        count += 1;
    }

    let mut notes = vec![chosen(count, &at)];
    notes.extend(columns.renamed().iter().map(|renamed| renamed.note(&columns)));
    if ragged > 0 {
        notes.push(Note {
            kind: NoteKind::Ragged,
            table: None,
            column: None,
            count: ragged,
            first,
            text: format!(
                "{ragged} of {count} rows do not have {} values; missing ones are null, others are in column_{} and so on",
                names.len(),
                names.len() + 1
            ),
        });
    }
    Some(Converted { layout: Layout::JsonLines, bytes, notes, is_for_tables: true })
}

/// A table with a header and no rows: lines of JSON would have no columns.
fn empty(columns: &ColumnNames, at: &str) -> Option<Converted> {
    let mut header = csv::Writer::from_writer(Vec::new());
    header.write_record(columns.names()).ok()?;
    let bytes = header.into_inner().ok()?;

    let layout = Layout::Rows(Dialect::delimited(b','));
    Some(Converted { layout, bytes, notes: vec![chosen(0, at)], is_for_tables: true })
}

fn chosen(count: u64, at: &str) -> Note {
    Note {
        kind: NoteKind::Chosen,
        table: None,
        column: None,
        count,
        first: None,
        text: format!("the rows of {at} have the names of its columns"),
    }
}

/// Writes a row as an object on a line; `None` if all rows together have more than `most` bytes.
fn write_row(
    bytes: &mut Vec<u8>,
    names: &[String],
    cells: &[&RawValue],
    most: usize,
) -> Option<()> {
    bytes.push(b'{');
    for (index, cell) in cells.iter().enumerate() {
        let own;
        let name = match names.get(index) {
            Some(name) => name,
            None => {
                own = quoted(&format!("column_{}", index + 1));
                &own
            }
        };
        if bytes.len() + name.len() + cell.get().len() > most {
            return None;
        }

        if index > 0 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b':');
        bytes.extend(cell.get().bytes().map(|byte| match byte {
            // Only white space between tokens has line breaks.
            b'\n' | b'\r' => b' ',
            other => other,
        }));
    }
    bytes.extend_from_slice(b"}\n");
    Some(())
}

/// A name as a string of JSON.
fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}

type Members<'a> = std::collections::BTreeMap<std::borrow::Cow<'a, str>, &'a RawValue>;

/// The names, the rows, and the pointer to the object that has them.
fn find<'a>(
    object: &Members<'a>,
    depth: usize,
) -> Option<(Vec<String>, Vec<&'a RawValue>, String)> {
    let member = |wanted: &[&str]| -> Vec<&'a RawValue> {
        let named = wanted.iter().filter_map(|name| {
            object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        });
        named.collect()
    };

    for columns in member(&COLUMNS) {
        let Some(names) = names(columns) else { continue };
        for rows in member(&ROWS) {
            let Ok(rows) = serde_json::from_str::<Vec<&RawValue>>(rows.get()) else { continue };
            // All rows are lists, or have their cells in a list; else the names are about something
            // else.
            if rows.iter().all(|row| cells(row).is_some()) {
                return Some((names, rows, "the object".to_owned()));
            }
        }
    }

    let depth = depth.checked_sub(1)?;
    object.iter().find_map(|(key, value)| {
        let inner: Members<'_> = serde_json::from_str(value.get()).ok()?;
        let (names, rows, at) = find(&inner, depth)?;
        let below = at.strip_prefix("the object").unwrap_or(&at);
        Some((names, rows, format!("/{key}{below}")))
    })
}

/// The names of columns: texts, or objects with a name; or those in `fields` of a schema.
fn names(columns: &RawValue) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(columns.get()).ok()?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(schema) => {
            let inner = ["fields", "columns"].into_iter().find_map(|name| schema.get(name));
            inner?.as_array()?
        }
        _ => return None,
    };

    let name = |column: &Value| match column {
        Value::String(name) => Some(name.clone()),
        // The columns of pandas may be numbers.
        Value::Number(number) => Some(number.to_string()),
        Value::Array(levels) => {
            let levels: Option<Vec<_>> = levels.iter().map(Value::as_str).collect();
            levels.map(|levels| levels.join("_"))
        }
        Value::Object(column) => of_object(column),
        _ => None,
    };
    let names: Option<Vec<_>> = list.iter().map(name).collect();
    names.filter(|names| !names.is_empty())
}

fn of_object(column: &Map<String, Value>) -> Option<String> {
    let spellings = ["name", "column_name", "columnName", "label", "title", "Name", "field"];
    let name = spellings.into_iter().find_map(|spelling| column.get(spelling))?;
    name.as_str().map(str::to_owned)
}

/// The cells of a row: a list, or `{"f": [{"v": …}]}`.
fn cells(row: &RawValue) -> Option<Vec<&RawValue>> {
    #[derive(serde::Deserialize)]
    struct Cell<'a> {
        #[serde(borrow)]
        v: &'a RawValue,
    }
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        #[serde(borrow)]
        f: Vec<Cell<'a>>,
    }

    if row.get().starts_with('[') {
        return serde_json::from_str(row.get()).ok();
    }
    let row: Row<'_> = serde_json::from_str(row.get()).ok()?;
    Some(row.f.into_iter().map(|cell| cell.v).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn columns_and_rows_become_records() {
        for (json, expected) in [
            (
                r#"{"columns": ["a", "b"], "rows": [[1, "x"], [2, null]]}"#,
                "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}\n",
            ),
            (
                r#"{"success": true, "columns": ["n"], "columnTypes": ["BIGINT"], "rows": [[12345678901234567890123]], "rowCount": 1}"#,
                "{\"n\":12345678901234567890123}\n",
            ),
            (
                r#"{"schema": {"fields": [{"name": "a", "type": "INTEGER"}]}, "rows": [{"f": [{"v": "1"}]}, {"f": [{"v": null}]}]}"#,
                "{\"a\":\"1\"}\n{\"a\":null}\n",
            ),
            (
                r#"{"resultSetMetaData": {"numRows": 1}, "rowType": [{"name": "A"}, {"name": "B"}], "data": [["1", "2"]]}"#,
                "{\"A\":\"1\",\"B\":\"2\"}\n",
            ),
            (
                r#"{"index": [0, 1], "columns": ["a"], "data": [[1.50], [2]]}"#,
                "{\"a\":1.50}\n{\"a\":2}\n",
            ),
            (
                r#"{"result": {"cols": [{"name": "x"}], "rows": [[{"y": [1,\n2]}]]}}"#,
                "{\"x\":{\"y\": [1, 2]}}\n",
            ),
            (r#"{"columns": ["a"], "values": [[1, 2], []]}"#, "{\"a\":1,\"column_2\":2}\n{}\n"),
        ] {
            let json = json.replace("\\n", "\n");
            assert!(seems_so(json.as_bytes()), "{json}");
            let converted = convert(json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(converted.bytes).unwrap(), expected, "{json}");
            assert_eq!(converted.layout, Layout::JsonLines);
        }
    }

    #[test]
    fn columns_without_rows_are_an_empty_table() {
        for (json, expected) in [
            (r#"{"columns": ["a", "b"], "rows": []}"#, "a,b\n"),
            (r#"{"result": {"cols": [{"name": "x, y"}], "rows": [ ]}}"#, "\"x, y\"\n"),
            (r#"{"schema": {"fields": [{"name": "a"}, {"name": "A"}]}, "data": []}"#, "a,A_2\n"),
        ] {
            assert!(seems_so(json.as_bytes()), "{json}");
            let converted = convert(json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(converted.bytes).unwrap(), expected, "{json}");
            assert_eq!(converted.layout, Layout::Rows(Dialect::delimited(b',')));
        }
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        for json in [
            r#"{"columns": ["a"], "rows": [{"a": 1}]}"#,
            r#"{"columns": 3, "rows": [[1]]}"#,
            r#"{"columns": [], "rows": []}"#,
            r#"{"columns": [1, {}], "rows": []}"#,
            r#"{"fields": ["a"], "data": {"x": 1}}"#,
            r#"[["a"], [1]]"#,
            r#"{"columns": ["a"], "rows": [[1]"#,
        ] {
            assert_eq!(convert(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn rows_that_do_not_fit_are_told() {
        let converted =
            convert(br#"{"columns": ["a", "b"], "rows": [[1, 2], [1], [1, 2, 3]]}"#).unwrap();
        let texts: Vec<_> = converted.notes.iter().map(|note| &*note.text).collect();
        assert!(texts[1].starts_with("2 of 3 rows do not have 2 values"), "{texts:?}");
        assert_eq!(converted.notes[1].first, Some(1));
    }
}
