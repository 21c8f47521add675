//! The columns of records: those that a SELECT can name.

use serde_json::Value;

use crate::{
    preview::Columns,
    records::{Container, Layout, Pointer, Record, RecordIndex, Splitter},
};

/// The most columns that are named.
const MAX_NAMES: usize = 30;
/// The most bytes of the names.
const MAX_NAMES_BYTES: usize = 600;

/// The names of the columns in the first bytes of a content, as SQL writes them:
/// `id, name, "unit price"`. `None` if there are none.
pub(super) fn column_names(index: &RecordIndex, head: &[u8]) -> Option<String> {
    let layout = index.layout();
    let mut columns = Columns::default();
    if let (Layout::Rows { delimiter }, Some(header)) = (layout, index.header()) {
        let end = usize::try_from(header.end).unwrap_or(usize::MAX).min(head.len());
        let names = row(&head[..end], delimiter)?;
        columns = Columns::of_table(names.iter());
    } else {
        let at: Pointer = index.at().parse().unwrap_or_default();
        let mut splitter = Splitter::new(layout, at, head.len());
        let mut sink = |record: Record, bytes: &[u8]| {
            add_record(&mut columns, layout, index.container(), &record, bytes);
        };
        // The head may end within a value.
        let _ = splitter.feed(head, &mut sink);
    }
    let mut names = String::new();
    for (number, name) in columns.names().map(identifier).enumerate() {
        if number == MAX_NAMES || names.len() + name.len() > MAX_NAMES_BYTES {
            names.push_str(", …");
            break;
        }
        if number > 0 {
            names.push_str(", ");
        }
        names.push_str(&name);
    }
    (!names.is_empty()).then_some(names)
}

/// A name in double quotes, unless it is a word.
fn identifier(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The fields of the first row.
pub(crate) fn row(bytes: &[u8], delimiter: u8) -> Option<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(bytes);
    reader.records().next()?.ok()
}

/// Adds a record to the columns. Returns whether it could be parsed.
pub(crate) fn add_record(
    columns: &mut Columns,
    layout: Layout,
    container: Container,
    record: &Record,
    bytes: &[u8],
) -> bool {
    if let Layout::Rows { delimiter } = layout {
        let row = row(bytes, delimiter);
        columns.add_row(row.iter().flatten());
        return row.is_some();
    }
    let start = usize::try_from(record.value - record.start).unwrap_or(0);
    let (key, value) = bytes.split_at(start.min(bytes.len()));
    let Ok(value) = serde_json::from_slice::<Value>(value) else { return false };
    let key = (layout == Layout::Json && container == Container::Object).then(|| {
        let key = String::from_utf8_lossy(key);
        let key = key.trim_end_matches(|c: char| c.is_whitespace() || c == ':');
        serde_json::from_str(key).unwrap_or_else(|_| key.to_owned())
    });
    columns.add_json(key.as_deref(), &value);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Indexer;

    #[test]
    fn columns_are_named_as_sql_writes_them() {
        let rows = Layout::Rows { delimiter: b',' };
        for (layout, content, names) in [
            (
                rows,
                "id,unit price,\"a \"\"b\"\"\"\n1,2,3\n",
                Some("id, \"unit price\", \"a \"\"b\"\"\""),
            ),
            (Layout::Json, "{\"n\": 1, \"items\": [{\"id\": 1}, {\"9\": 2}]}", Some("id, \"9\"")),
            (Layout::Json, "{\"a\": {\"id\": 1}, \"b\": 2}", Some("key, id, value")),
            (Layout::JsonLines, "{\"id\": 1}\n{\"id\": 2, \"x\": 3}\n", Some("id, x")),
            (Layout::Json, "[]", None),
        ] {
            let mut indexer = Indexer::new(layout);
            indexer.feed(content.as_bytes()).expect("it has records");
            let index = indexer.finish().expect("it has records").expect("it has records");
            assert_eq!(column_names(&index, content.as_bytes()).as_deref(), names, "{content}");
        }
    }

    #[test]
    fn many_columns_are_cut_off() {
        let header = (0..100).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
        let content = format!("{header}\n{header}\n");
        let mut indexer = Indexer::new(Layout::Rows { delimiter: b',' });
        indexer.feed(content.as_bytes()).expect("it is CSV");
        let index = indexer.finish().expect("it is CSV").expect("it is CSV");
        let names = column_names(&index, content.as_bytes()).expect("it has columns");
        assert!(names.starts_with("c0, c1, ") && names.ends_with(", c29, …"), "{names}");
    }
}
