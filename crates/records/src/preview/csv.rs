//! Facts about tables: the delimiter, the types of columns, the number of rows.

use super::{
    Sample, estimate,
    words::{count, cut, name_of},
};
use crate::typing::{ColumnNames, ColumnType, ColumnTyping, Field};

/// The maximum number of rows that are read.
const MAX_ROWS: usize = 500;
/// The maximum number of columns that are listed.
const MAX_COLUMNS: usize = 60;

/// The delimiter of a table: all sampled rows have the same number of fields,
/// and more than one.
pub(super) fn delimiter(sample: &Sample<'_>) -> Option<u8> {
    let text = complete_lines(sample);

    // Searching for the byte is cheaper than making a parser.
    [b',', b'\t', b';', b'|']
        .into_iter()
        .filter(|delimiter| text.as_bytes().contains(delimiter))
        .find(|delimiter| is_table(rows(text, *delimiter)))
}

/// Whether rows are a table: all have as many fields as the first row, which has names. Stops at
/// the first row with another number.
fn is_table(mut rows: impl Iterator<Item = csv::StringRecord>) -> bool {
    let is_name = |field: &str| {
        // Prose has a space after a comma.
        !field.starts_with(' ')
            && (1..=80).contains(&field.trim().len())
            && field.trim().parse::<f64>().is_err()
    };

    let Some(header) = rows.next() else { return false };
    let mut matching = 0;
    header.len() > 1
        && header.iter().all(is_name)
        && rows.all(|row| {
            matching += 1;
            row.len() == header.len()
        })
        // Prose has commas too, so two rows after the header must match it.
        && matching > 1
}

/// The head up to its last complete line.
fn complete_lines<'a>(sample: &Sample<'a>) -> &'a str {
    let text = sample.text();
    if sample.is_whole() { text } else { text.rsplit_once('\n').map_or("", |t| t.0) }
}

/// The first rows of a text.
fn rows(text: &str, delimiter: u8) -> impl Iterator<Item = csv::StringRecord> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    reader.into_records().take(MAX_ROWS).map_while(Result::ok)
}

/// Facts about a table, the list of its columns cut to `budget` bytes.
pub(super) fn facts(sample: &Sample<'_>, delimiter: u8, budget: usize) -> Vec<String> {
    let rows: Vec<_> = rows(complete_lines(sample), delimiter).collect();
    let Some((header, rest)) = rows.split_first() else { return Vec::new() };

    let end = rows.last().and_then(|row| row.position()).map_or(0, csv::Position::byte);
    let names = ColumnNames::of_header(header);
    let shown = names.names().iter().map(|name| name_of(name, 80)).enumerate().take(MAX_COLUMNS);
    let columns: Vec<_> =
        shown.map(|(index, name)| format!("{name}: {}", column_type(rest, index))).collect();

    let mut listed = columns.join(", ");
    if header.len() > MAX_COLUMNS {
        listed += &format!(", … {} more", header.len() - MAX_COLUMNS);
    }
    if listed.len() > budget {
        listed = format!("{}…", cut(&listed, budget));
    }

    let types = match rest.len() {
        _ if sample.is_whole() && rest.len() < MAX_ROWS - 1 => "types from all rows".to_owned(),
        seen => format!("types from the first {}", count(seen as u64, "row")),
    };

    // A quoted field may contain a line feed, so that a row spans several lines.
    let multiline = rest.iter().any(|row| row.iter().any(|field| field.contains('\n')));
    let rows = match sample.lines {
        _ if sample.is_whole() && rest.len() < MAX_ROWS - 1 => count(rest.len() as u64, "row"),
        Some(lines) if !multiline => count(lines.saturating_sub(1), "row"),
        _ => {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            format!("{} rows", estimate(rest.len(), end, sample.size))
        }
    };

    vec![
        format!("Table: {rows} below a header line, {}", count(header.len() as u64, "column")),
        format!("Columns ({types}): {listed}"),
    ]
}

/// The type of all fields of a column.
fn column_type(rows: &[csv::StringRecord], column: usize) -> String {
    let mut typing = ColumnTyping::default();
    for (record, row) in rows.iter().enumerate() {
        if let Some(field) = row.get(column) {
            typing.add(record as u64, Field::Delimited(field));
        }
    }

    let typed = typing.finish();
    match typed.column_type() {
        ColumnType::Null => "empty".to_owned(),
        known if typed.filled() < rows.len() as u64 => format!("{known} or empty"),
        known => known.name().to_owned(),
    }
}
