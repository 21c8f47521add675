//! [`ColumnTypes`]: the types of the columns that a statement names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use larder_records::typing::{ColumnType, TypedColumn};

use crate::worker::profile::Profile;

/// The collation of columns of integers beyond 64 bits, which are text: it compares numbers.
pub(super) const NUMBERS: &str = "numbers";

/// The columns of all tables, by the names of table and column in lower case.
pub(super) struct ColumnTypes<'a>(BTreeMap<String, &'a Profile>);

impl<'a> ColumnTypes<'a> {
    pub(super) fn new(tables: &'a [Profile]) -> Self {
        Self(tables.iter().map(|table| (table.spec.name.to_ascii_lowercase(), table)).collect())
    }

    /// A column by its table and its name, as the authorizer gives them.
    pub(super) fn column(&self, table: &str, column: &str) -> Option<&'a TypedColumn> {
        let table = self.0.get(&table.to_ascii_lowercase())?;
        table.column(table.columns.find(column)?)
    }

    /// Whether one of these columns has integers beyond 64 bits as texts.
    pub(super) fn have_big_integers(&self, read: &BTreeSet<(String, String)>) -> bool {
        read.iter()
            .filter_map(|(table, column)| self.column(table, column))
            .any(TypedColumn::has_big_integers_as_text)
    }
}

/// The statement that makes the empty table of a content.
pub(super) fn create_table(table: &Profile) -> String {
    let mut sql = format!("CREATE TABLE {} (", quoted(&table.spec.name));
    for (index, name) in table.columns.names().iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let declared = table.column(index).map_or("", declared);
        // Writing to a string cannot fail.
        let _ = write!(sql, "{comma}{} {declared}", quoted(name));
    }
    sql + ")"
}

/// The type by which SQLite compares the column with texts and numbers.
fn declared(column: &TypedColumn) -> &'static str {
    match column.column_type() {
        ColumnType::Boolean | ColumnType::Integer => "INTEGER",
        ColumnType::Number if column.has_integers() => "NUMERIC",
        ColumnType::Number => "REAL",
        ColumnType::BigInteger => "TEXT COLLATE numbers",
        ColumnType::Mixed if column.has_numbers() => "",
        ColumnType::Null => "",
        ColumnType::Text
        | ColumnType::DateTime
        | ColumnType::List
        | ColumnType::Object
        | ColumnType::Mixed => "TEXT",
    }
}

/// A name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
