//! The columns of records: those that a SELECT can name.

use std::mem::replace;

use csv_core::ReadRecordResult;
use larder_records::{Container, Layout, Pointer, Record, RecordIndex, Splitter, preview::Columns};

/// The most columns that are named.
const MAX_NAMES: usize = 30;
/// The most bytes of the names.
const MAX_NAMES_BYTES: usize = 600;

/// The names of the columns in the first bytes of a content, as SQL writes them:
/// `id, name, "unit price"`. `None` if there are none.
pub(super) fn column_names(index: &RecordIndex, head: &[u8]) -> Option<String> {
    let layout = index.layout();
    let mut columns = if let (Layout::Rows { delimiter }, Some(header)) = (layout, index.header()) {
        let end = usize::try_from(header.end).unwrap_or(usize::MAX).min(head.len());
        Columns::of_table(Rows::new(delimiter).fields(&head[..end])?)
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

/// A name in double quotes, unless it is a word.
fn identifier(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The columns of records that are added one by one.
pub(crate) struct RecordColumns {
    pub(crate) columns: Columns,
    form: Form,
}

/// How records are written.
enum Form {
    Rows(Rows),
    /// JSON, each value after its key if the records are members of an object.
    Json {
        with_key: bool,
    },
}

impl RecordColumns {
    /// Adds to the columns of a header, or to none.
    pub(crate) fn new(columns: Columns, index: &RecordIndex) -> Self {
        let form = match index.layout() {
            Layout::Rows { delimiter } => Form::Rows(Rows::new(delimiter)),
            Layout::JsonLines | Layout::Log => Form::Json { with_key: false },
            Layout::Json => Form::Json { with_key: index.container() == Container::Object },
        };
        Self { columns, form }
    }

    /// Adds a record. Returns whether it could be parsed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> bool {
        match &mut self.form {
            Form::Rows(rows) => {
                let fields = rows.fields(bytes);
                let is_row = fields.is_some();
                self.columns.add_row(fields.into_iter().flatten());
                is_row
            }
            Form::Json { with_key } => {
                std::str::from_utf8(bytes).is_ok_and(|json| self.columns.add_json(json, *with_key))
            }
        }
    }
}

/// Parses rows one by one. One parser serves them all: making it takes as long as parsing a
/// hundred rows.
pub(crate) struct Rows {
    parser: Box<csv_core::Reader>,
    /// The fields of a row, one after the other.
    fields: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
}

impl Rows {
    pub(crate) fn new(delimiter: u8) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Self { parser: Box::new(parser), fields: Vec::new(), ends: Vec::new() }
    }

    /// The fields of a row, without quotes; `None` if it is empty or not UTF-8.
    pub(crate) fn fields(&mut self, row: &[u8]) -> Option<impl Iterator<Item = &str>> {
        let Self { parser, fields, ends } = self;
        parser.reset();

        // All fields of a row together are no longer than the row.
        fields.resize(row.len().max(fields.len()), 0);
        let (mut read, mut written, mut count) = (0, 0, 0);

        loop {
            let input = &row[read..];
            let (result, more_read, more_written, more_count) =
                parser.read_record(input, &mut fields[written..], &mut ends[count..]);
            read += more_read;
            written += more_written;
            count += more_count;

            match result {
                // The next call, without input, ends the row.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => fields.resize(2 * fields.len() + 1, 0),
                ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len() + 8, 0),
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return None,
            }
        }

        let text = std::str::from_utf8(&fields[..written]).ok()?;
        Some(ends[..count].iter().scan(0, |start, end| text.get(replace(start, *end)..*end)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use larder_records::Indexer;

    proptest! {
        #[test]
        fn one_parser_reads_rows_as_one_for_each_does(
            all in proptest::collection::vec("[a,;\"\r\n é]{0,20}", 1..6)
        ) {
            let mut rows = Rows::new(b',');
            for row in all {
                let mut reader = csv::ReaderBuilder::new()
                    .has_headers(false)
                    .flexible(true)
                    .from_reader(row.as_bytes());
                let expected = reader.records().next().and_then(Result::ok);
                let expected = expected.as_ref().map(|row| row.iter().collect::<Vec<_>>());

                let fields = rows.fields(row.as_bytes()).map(Iterator::collect::<Vec<_>>);

                prop_assert_eq!(fields, expected, "{}", row);
            }
        }
    }

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
