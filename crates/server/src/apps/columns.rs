//! Cells as a page shows them, and the columns that they are in.

use larder_records::{
    typing::{
        ColumnNames, ColumnType, ColumnTyping, Field, RecordPart, TypedColumn, TypedValue,
        record_parts,
    },
    words::cut,
};
use serde::Serialize;
#[cfg(feature = "query")]
use serde_json::Value;

/// The longest text of a cell, in bytes.
const MAX_CELL_BYTES: usize = 500;
/// The most columns of a table.
pub(super) const MAX_COLUMNS: usize = 200;

/// The text of a cell; `None` for null and for a column that a record does not have.
pub(super) type Cell = Option<String>;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    /// Of the cells that were seen.
    pub(super) r#type: Type,
}

/// The type of a column's cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Type {
    /// No cell has a value.
    #[default]
    Empty,
    Number,
    Boolean,
    Text,
    /// Lists and objects.
    Json,
}

impl Column {
    /// A column of a result of SQL, whose type has this name.
    #[cfg(feature = "query")]
    pub(super) fn of_result(name: String, kind: &str) -> Self {
        let r#type = match kind {
            "null" => Type::Empty,
            "integer" | "number" => Type::Number,
            _ => Type::Text,
        };
        Self { name, r#type }
    }

    pub(super) fn is_number(&self) -> bool {
        self.r#type == Type::Number
    }
}

impl From<&TypedColumn> for Type {
    fn from(column: &TypedColumn) -> Self {
        match column.column_type() {
            ColumnType::Null => Self::Empty,
            ColumnType::Boolean => Self::Boolean,
            ColumnType::Integer | ColumnType::BigInteger | ColumnType::Number => Self::Number,
            ColumnType::Text | ColumnType::DateTime => Self::Text,
            ColumnType::List | ColumnType::Object => Self::Json,
            ColumnType::Mixed => {
                let is_json =
                    column.kinds().iter().all(|(kind, _)| ["list", "object"].contains(kind));
                if is_json { Self::Json } else { Self::Text }
            }
        }
    }
}

/// A field as it is written.
enum Written {
    Delimited(String),
    Json(String),
    Text(String),
}

impl Written {
    fn new(field: Field<'_>) -> Self {
        match field {
            Field::Delimited(text) => Self::Delimited(text.to_owned()),
            Field::Json(json) => Self::Json(json.to_owned()),
            Field::Text(text) => Self::Text(text.to_owned()),
            Field::Number(number) => Self::Json(number.to_string()),
        }
    }

    fn field(&self) -> Field<'_> {
        match self {
            Self::Delimited(text) => Field::Delimited(text),
            Self::Json(json) => Field::Json(json),
            Self::Text(text) => Field::Text(text),
        }
    }

    /// The cell in a column of this type.
    fn cell(&self, column_type: ColumnType) -> Cell {
        Some(match column_type.value(self.field()) {
            TypedValue::Null => return None,
            TypedValue::Boolean(value) => value.to_string(),
            TypedValue::Integer(number) => number.to_string(),
            TypedValue::Number(_) => match self {
                Self::Delimited(text) | Self::Json(text) | Self::Text(text) => {
                    text.trim().to_owned()
                }
            },
            TypedValue::BigInteger(text) | TypedValue::Text(text) => shortened(&text),
            TypedValue::Json(json) => shortened(json),
        })
    }
}

/// Records that become rows. Their fields stay as they are written until the types of the columns
/// are known.
#[derive(Default)]
pub(super) struct TableRows {
    names: ColumnNames,
    typings: Vec<ColumnTyping>,
    rows: Vec<Vec<Option<Written>>>,
}

impl TableRows {
    /// The rows below this header.
    pub(super) fn of_header<'a>(header: impl Iterator<Item = &'a str>) -> Self {
        Self { names: ColumnNames::of_header(header), ..Self::default() }
    }

    /// Adds a row of fields.
    pub(super) fn add_fields<'a>(&mut self, fields: impl Iterator<Item = &'a str>) {
        self.rows.push(Vec::new());
        for (column, field) in fields.take(MAX_COLUMNS).enumerate() {
            if column == self.names.len() {
                self.names.add("");
            }
            self.set(column, Field::Delimited(field));
        }
    }

    /// Adds a record of JSON; `is_member` if it is a member of an object.
    pub(super) fn add_json(&mut self, json: &str, is_member: bool) {
        self.rows.push(Vec::new());
        let mut each = |part: RecordPart<'_>, field: Field<'_>| {
            if self.names.len() < MAX_COLUMNS || self.names.known(part).is_some() {
                let column = self.names.of_part(part);
                self.set(column, field);
            }
        };

        if record_parts(json, is_member, &mut each).is_err() {
            each(RecordPart::Value, Field::Text(json));
        }
    }

    /// Sets a cell of the last row.
    fn set(&mut self, column: usize, field: Field<'_>) {
        if column >= self.typings.len() {
            self.typings.resize_with(column + 1, ColumnTyping::default);
        }
        self.typings[column].add(self.rows.len() as u64 - 1, field);

        let Some(row) = self.rows.last_mut() else { return };
        if column >= row.len() {
            row.resize_with(column + 1, || None);
        }
        row[column] = Some(Written::new(field));
    }

    /// The columns, and the cells of each row.
    pub(super) fn finish(mut self) -> (Vec<Column>, Vec<Vec<Cell>>) {
        self.names.resolve();
        let count = self.names.len().min(MAX_COLUMNS);
        self.typings.resize_with(count, ColumnTyping::default);
        let typed: Vec<_> = self.typings.into_iter().map(ColumnTyping::finish).collect();

        let columns = self.names.names().iter().zip(&typed);
        let columns =
            columns.map(|(name, typed)| Column { name: name.clone(), r#type: Type::from(typed) });
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&typed);
            let cells = cells.map(|(cell, typed)| cell.as_ref()?.cell(typed.column_type()));
            cells.collect()
        });
        (columns.collect(), rows.collect())
    }
}

/// A value of a result of SQL as a cell.
#[cfg(feature = "query")]
pub(super) fn result_cell(value: &Value) -> Cell {
    match value {
        Value::Null => None,
        Value::String(text) => Some(shortened(text)),
        value => Some(shortened(&value.to_string())),
    }
}

/// The text, cut at a character, with an ellipsis if it is too long.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= MAX_CELL_BYTES {
        return text.to_owned();
    }
    format!("{}…", cut(text, MAX_CELL_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(fields: &[&str], is_json: bool) -> (Type, Vec<Cell>) {
        let mut table =
            if is_json { TableRows::default() } else { TableRows::of_header(["a"].into_iter()) };
        for field in fields {
            if is_json {
                table.add_json(field, false);
            } else {
                table.add_fields([*field].into_iter());
            }
        }

        let (columns, rows) = table.finish();
        let cells = rows.into_iter().map(|mut row| row.pop().unwrap_or_default());
        (columns[0].r#type, cells.collect())
    }

    #[test]
    fn cells_show_values_and_columns_their_type() {
        let cells =
            |texts: &[&str]| texts.iter().map(|t| Some((*t).to_owned())).collect::<Vec<_>>();

        for (json, kind) in [
            ("true", Type::Boolean),
            ("9007199254740993", Type::Number),
            ("18446744073709551615", Type::Number),
            ("[1,{\"a\":1.10}]", Type::Json),
        ] {
            assert_eq!(
                column(&[json, "null"], true),
                (kind, [cells(&[json]), vec![None]].concat())
            );
        }

        for (fields, kind, shown) in [
            (["-1.5e3", "0.50"], Type::Number, ["-1.5e3", "0.50"]),
            (["00501", "10001"], Type::Text, ["00501", "10001"]),
            (["1.10", "1.10.1"], Type::Text, ["1.10", "1.10.1"]),
            (["inf", " 9"], Type::Text, ["inf", " 9"]),
            (["False", "TRUE"], Type::Boolean, ["false", "true"]),
        ] {
            assert_eq!(column(&fields, false), (kind, cells(&shown)), "{fields:?}");
        }

        let nulls = column(&["", "NA", "+3", "4"], false);
        let shown = vec![None, None, Some("3".to_owned()), Some("4".to_owned())];
        assert_eq!(nulls, (Type::Number, shown));
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        let cell = shortened(&"ä".repeat(400));

        assert_eq!(cell.chars().count(), 251);
        assert!(cell.ends_with('…'));
    }
}
