//! Facts about tables: the delimiter, the types of columns, the number of rows.

use super::{Sample, estimate};
use crate::words::{count, cut, name_of};
use crate::{
    Dialect, Misfits,
    table_detection::{self, Verdict},
    typing::{ColumnNames, ColumnType, ColumnTyping, Field},
};

/// The maximum number of rows that are read.
const MAX_ROWS: usize = 500;
/// The maximum number of columns that are listed.
const MAX_COLUMNS: usize = 60;

/// The dialect of content that is declared as a table.
pub(super) fn declared(sample: &Sample<'_>, delimiter: u8) -> Dialect {
    strict(sample)
        .unwrap_or_else(|| table_detection::declared(sample.text(), !sample.is_whole(), delimiter))
}

/// The dialect of text that seems to be a table, or may be one.
pub(super) fn undeclared(sample: &Sample<'_>) -> Verdict {
    let strict = strict(sample).map(Verdict::Table);
    strict.unwrap_or_else(|| table_detection::undeclared(sample.text(), !sample.is_whole()))
}

/// The dialect of a whole text that is a table.
pub fn declared_table(text: &str) -> Dialect {
    declared(&Sample::of_text(text.as_bytes(), true), b',')
}

/// The dialect of text that may be a table, judging by its first bytes. `is_whole`: they are all.
pub fn possible_table(head: &[u8], is_whole: bool) -> Option<Dialect> {
    match undeclared(&Sample::of_text(head, is_whole)) {
        Verdict::Perhaps(dialect) => Some(dialect),
        Verdict::Table(_) | Verdict::No => None,
    }
}

/// The dialect of a table by RFC 4180: all sampled rows have the same number of fields, and more
/// than one. Most tables are so, and need no other attempt.
fn strict(sample: &Sample<'_>) -> Option<Dialect> {
    let text = sample.text();

    // Searching for the byte is cheaper than making a parser.
    [b',', b'\t', b';', b'|']
        .into_iter()
        .filter(|delimiter| text.as_bytes().contains(delimiter))
        .map(Dialect::delimited)
        .find(|dialect| is_table(rows(complete_rows(sample, *dialect), *dialect)))
}

/// Whether rows are a table: all have as many fields as the first row, which has names. Stops at
/// the first row with another number.
fn is_table(mut rows: impl Iterator<Item = csv::StringRecord>) -> bool {
    let is_name = |field: &str| {
        // A name begins with a letter; prose and values may begin otherwise.
        field.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && field.len() <= 80
            && !field.contains(": ")
    };

    let Some(header) = rows.next() else { return false };
    let is_again =
        |row: &csv::StringRecord| row.iter().zip(&header).any(|(field, name)| field == name);
    let mut matching = 0;
    header.len() > 1
        && header.iter().all(is_name)
        && rows.all(|row| {
            matching += 1;
            row.len() == header.len() && !is_again(&row)
        })
        // Prose has commas too, so two rows after the header must match it.
        && matching > 1
}

/// The head up to the end of its last complete row.
fn complete_rows<'a>(sample: &Sample<'a>, dialect: Dialect) -> &'a str {
    let text = sample.text();
    if sample.is_whole() {
        return text;
    }
    table_detection::complete_rows(text, dialect).unwrap_or_default()
}

/// The first rows of a text.
fn rows(text: &str, dialect: Dialect) -> impl Iterator<Item = csv::StringRecord> {
    let reader = dialect.reader().from_reader(text.as_bytes());
    reader.into_records().take(MAX_ROWS).map_while(Result::ok)
}

/// Facts about a table, the list of its columns cut to `budget` bytes.
pub(super) fn facts(sample: &Sample<'_>, dialect: Dialect, budget: usize) -> Vec<String> {
    let text = complete_rows(sample, dialect);
    let below = dialect.below(text);
    let rows: Vec<_> = rows(below, dialect).collect();
    let Some(first) = rows.first() else { return Vec::new() };

    let rest = if dialect.header { &rows[1..] } else { &rows[..] };
    let names = if dialect.header {
        ColumnNames::of_header(first)
    } else {
        ColumnNames::of_header(first.iter().map(|_| ""))
    };
    let shown = names.names().iter().map(|name| name_of(name, 80)).enumerate().take(MAX_COLUMNS);
    let columns: Vec<_> =
        shown.map(|(index, name)| format!("{name}: {}", column_type(rest, index))).collect();

    let mut listed = columns.join(", ");
    if first.len() > MAX_COLUMNS {
        listed += &format!(", … {} more", first.len() - MAX_COLUMNS);
    }
    if listed.len() > budget {
        listed = format!("{}…", cut(&listed, budget));
    }

    let all = sample.is_whole() && rows.len() < MAX_ROWS;
    let types = match rest.len() {
        _ if all => "types from all rows".to_owned(),
        seen => format!("types from the first {}", count(seen as u64, "row")),
    };

    let header = if dialect.header { " below a header line" } else { " without a header line" };
    let mut facts = vec![
        format!(
            "Table: {}{header}, {}",
            total(sample, dialect, &rows, rest, text.len() - below.len()),
            count(first.len() as u64, "column")
        ),
        format!("Columns ({types}): {listed}"),
    ];
    facts.extend(dialect.told());
    facts.extend(misfits(rest, first.len(), all));
    facts
}

/// The number of rows in words.
fn total(
    sample: &Sample<'_>,
    dialect: Dialect,
    rows: &[csv::StringRecord],
    rest: &[csv::StringRecord],
    above: usize,
) -> String {
    // A quoted field may contain a line feed, so that a row spans several lines.
    let multiline = rest.iter().any(|row| row.iter().any(|field| field.contains('\n')));
    let is_plain = dialect.is_plain() && !multiline;

    match sample.lines {
        _ if sample.is_whole() && rows.len() < MAX_ROWS => count(rest.len() as u64, "row"),
        Some(lines) if is_plain && lines > 1 => count(lines - 1, "row"),
        _ => {
            let end = rows.last().and_then(|row| row.position()).map_or(0, csv::Position::byte);
            let end = usize::try_from(end).unwrap_or(usize::MAX).saturating_add(above);
            format!("{} rows", estimate(rest.len(), end, sample.size))
        }
    }
}

/// The rows that do not have as many fields as the first row.
fn misfits(rows: &[csv::StringRecord], width: usize, all: bool) -> Option<String> {
    let mut misfits = Misfits::default();
    for (row, number) in rows.iter().zip(1..) {
        misfits.add(number, row.len(), width);
    }

    let from = if all {
        String::new()
    } else {
        format!(" among the first {}", count(rows.len() as u64, "row"))
    };
    misfits.told().map(|told| format!("Note{from}: {told}"))
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
