//! The columns of records: those that a SELECT can name.

use larder_records::{
    Container, Dialect, Layout, Misfits, Pointer, Record, RecordIndex, RowParser, Splitter,
    preview::Columns, repair_member, repair_value,
};

/// The most columns that are named.
const MAX_NAMES: usize = 30;
/// The most bytes of the names.
const MAX_NAMES_BYTES: usize = 400;

/// The names of the columns in the first bytes of a content, as SQL writes them:
/// `id, name, "unit price"`. `None` if there are none.
pub(super) fn column_names(index: &RecordIndex, head: &[u8]) -> Option<String> {
    let layout = index.layout();
    let mut columns = if let (Layout::Rows(dialect), Some(header)) = (layout, index.header()) {
        let end = usize::try_from(header.end).unwrap_or(usize::MAX).min(head.len());
        let start = usize::try_from(header.start).unwrap_or(end).min(end);
        Columns::of_table(RowParser::new(dialect).fields(&head[start..end])?)
    } else if let Layout::Rows(dialect) = layout {
        without_header(dialect, index, head)?
    } else {
        let at: Pointer = index.at().parse().unwrap_or_default();
        let mut splitter = Splitter::new(layout, at, head.len());
        let mut records = RecordColumns::new(Columns::default(), index);
        let mut sink = |_: Record, bytes: &[u8]| {
            records.add(bytes);
        };

        // The head may end within a value.
        let _ = splitter.feed(head, &mut sink);
        records.columns
    };

    let mut names = String::new();
    for (number, name) in columns.names().iter().map(|name| identifier(name)).enumerate() {
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

/// The columns of a table without a header, which `bytes` begin with, after lines above it.
pub(crate) fn without_header(
    dialect: Dialect,
    index: &RecordIndex,
    bytes: &[u8],
) -> Option<Columns> {
    let start = usize::try_from(index.nearest(0)?.offset).ok()?;
    let row = bytes.get(start..)?;
    let width = RowParser::new(dialect).fields(row)?.count();
    let names: Vec<_> = (1..=width).map(|number| format!("column_{number}")).collect();
    Some(Columns::of_table(names.iter().map(String::as_str)))
}

/// A name in double quotes, unless it is a word.
fn identifier(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The columns of records that are added one by one.
pub(crate) struct RecordColumns {
    pub(crate) columns: Columns,
    /// The rows that do not have as many fields as there are columns.
    pub(crate) misfits: Misfits,
    form: Form,
}

/// How records are written.
enum Form {
    Rows {
        rows: RowParser,
        /// The number of columns; `None` before the first row of a table without a header.
        width: Option<usize>,
    },
    /// JSON, each value after its key if the records are members of an object.
    Json { with_key: bool },
}

impl RecordColumns {
    /// Adds to the columns of a header, or to none.
    pub(crate) fn new(mut columns: Columns, index: &RecordIndex) -> Self {
        let form = match index.layout() {
            Layout::Rows(dialect) => {
                let width = dialect.header.then(|| columns.names().len());
                Form::Rows { rows: RowParser::new(dialect), width }
            }
            Layout::JsonLines | Layout::Log => Form::Json { with_key: false },
            Layout::Json => Form::Json { with_key: index.container() == Container::Object },
        };
        Self { columns, misfits: Misfits::default(), form }
    }

    /// Adds a record. Returns whether it could be parsed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> bool {
        match &mut self.form {
            Form::Rows { rows, width } => {
                let fields = rows.fields(bytes);
                let is_row = fields.is_some();
                let mut count = 0;
                self.columns.add_row(fields.into_iter().flatten().inspect(|_| count += 1));
                let row = self.columns.records();
                self.misfits.add(row, count, *width.get_or_insert(count));
                is_row
            }
            Form::Json { with_key } => {
                let with_key = *with_key;
                if std::str::from_utf8(bytes)
                    .is_ok_and(|json| self.columns.add_json(json, with_key))
                {
                    return true;
                }

                // A record that a strict parser refuses is repaired, as queries do.
                let repaired = if with_key { repair_member(bytes) } else { repair_value(bytes) };
                let repaired = repaired.and_then(|json| String::from_utf8(json).ok());
                repaired.is_some_and(|json| self.columns.add_json(&json, with_key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_records::Indexer;

    #[test]
    fn columns_are_named_as_sql_writes_them() {
        let rows = Layout::Rows(Dialect::delimited(b','));
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
        let mut indexer = Indexer::new(Layout::Rows(Dialect::delimited(b',')));
        indexer.feed(content.as_bytes()).expect("it is CSV");
        let index = indexer.finish().expect("it is CSV").expect("it is CSV");

        let names = column_names(&index, content.as_bytes()).expect("it has columns");
        assert!(names.starts_with("c0, c1, ") && names.ends_with(", c29, …"), "{names}");
    }
}
