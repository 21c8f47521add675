//! [`RowParser`]: the fields of a row.

use std::mem::replace;

use csv_core::ReadRecordResult;

use super::Dialect;

/// Parses rows one by one. One parser serves them all: making it takes as long as parsing a
/// hundred rows.
#[derive(Debug)]
pub struct RowParser {
    parser: Box<csv_core::Reader>,
    /// The fields of a row, one after the other.
    fields: Vec<u8>,
    /// The offset after each field.
    ends: Vec<usize>,
}

impl RowParser {
    /// A parser of rows that are written so.
    pub fn new(dialect: Dialect) -> Self {
        let parser = csv_core::ReaderBuilder::new()
            .delimiter(dialect.delimiter)
            .quoting(dialect.quote.is_some())
            .quote(dialect.quote.unwrap_or(b'"'))
            .escape(dialect.escape)
            .build();
        Self { parser: Box::new(parser), fields: Vec::new(), ends: Vec::new() }
    }

    /// The fields of a row, without quotes; `None` if it is empty or not UTF-8.
    pub fn fields(&mut self, row: &[u8]) -> Option<impl Iterator<Item = &str>> {
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

    proptest! {
        #[test]
        fn one_parser_reads_rows_as_one_for_each_does(
            all in proptest::collection::vec("[a,;\"\r\n é]{0,20}", 1..6)
        ) {
            let mut rows = RowParser::new(Dialect::delimited(b','));
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
}
