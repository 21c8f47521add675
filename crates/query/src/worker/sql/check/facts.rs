//! The columns as the check knows them: their types over all values, with an example.

use larder_protocol::quote::visible;
use larder_records::typing::{ColumnType, TypedColumn};

use super::types::{ColumnFacts, TableFacts, ValueSort};
use crate::worker::profile::Profile;

pub(super) fn facts(tables: &[Profile]) -> Vec<TableFacts> {
    let table = |table: &Profile| {
        let names = table.columns.names().iter().enumerate();
        let columns = names.filter_map(|(index, name)| Some(column(name, table.column(index)?)));
        TableFacts { name: table.spec.name.clone(), columns: columns.collect() }
    };
    tables.iter().map(table).collect()
}

fn column(name: &str, typed: &TypedColumn) -> ColumnFacts {
    let (sort, kind) = match typed.column_type() {
        ColumnType::Null => (ValueSort::Unknown, "null"),
        ColumnType::Boolean => (ValueSort::Boolean, "true or false"),
        ColumnType::Integer => (ValueSort::Number, "an integer"),
        ColumnType::Number => (ValueSort::Number, "a number"),
        ColumnType::BigInteger => (ValueSort::BigInteger, "a big integer"),
        ColumnType::DateTime => (ValueSort::Date, "a date"),
        ColumnType::List => (ValueSort::Text, "a list of JSON"),
        ColumnType::Object => (ValueSort::Text, "an object of JSON"),
        ColumnType::Mixed if typed.has_numbers() => (ValueSort::Mixed, "mixed"),
        ColumnType::Text | ColumnType::Mixed => (ValueSort::Text, "text"),
    };

    let example = typed.why_text().or_else(|| typed.example());
    let example = example.map(|example| match sort {
        ValueSort::Text | ValueSort::Date | ValueSort::BigInteger => literal(&example.text),
        ValueSort::Mixed if example.text.starts_with('"') => literal(&example.text),
        _ => visible(example.text.trim()).into_owned(),
    });

    let has_numeric_texts = typed.has_numeric_texts();
    let filled = typed.filled();
    let with_blanks = typed.with_blanks().map(|(count, first)| (count, literal(&first.text)));

    ColumnFacts {
        name: name.to_owned(),
        sort,
        kind,
        example,
        filled,
        has_numeric_texts,
        with_blanks,
    }
}

/// A text of CSV or JSON as a statement has it.
fn literal(text: &str) -> String {
    let text = match text.strip_prefix('"') {
        Some(json) => json.strip_suffix('"').unwrap_or(json),
        None => text,
    };
    format!("'{}'", visible(text).replace('\'', "''"))
}
