//! Cells as a page shows them, and the columns that they are in.

use larder_records::preview::words::cut;
use serde::Serialize;
use serde_json::Value;

/// The longest text of a cell, in bytes.
const MAX_CELL_BYTES: usize = 500;
/// The most columns of a table.
pub(super) const MAX_COLUMNS: usize = 200;

/// What a cell shows; `None` for null and for what a record does not have.
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
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), r#type: Type::Empty }
    }

    pub(super) fn is_number(&self) -> bool {
        self.r#type == Type::Number
    }

    pub(super) fn add(&mut self, seen: Type) {
        self.r#type = match (self.r#type, seen) {
            (known, Type::Empty) => known,
            (Type::Empty, seen) => seen,
            (known, seen) if known == seen => known,
            _ => Type::Text,
        };
    }
}

/// A JSON value as a cell.
pub(super) fn json_cell(value: &Value) -> (Cell, Type) {
    match value {
        Value::Null => (None, Type::Empty),
        Value::Bool(value) => (Some(value.to_string()), Type::Boolean),
        Value::Number(number) => (Some(number.to_string()), Type::Number),
        Value::String(text) => (Some(shortened(text)), Type::Text),
        Value::Array(_) | Value::Object(_) => (Some(shortened(&value.to_string())), Type::Json),
    }
}

/// A field of CSV as a cell.
pub(super) fn field_cell(field: &str) -> (Cell, Type) {
    let digits = field.strip_prefix('-').unwrap_or(field);
    // 00501 is a code.
    let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");

    let kind = match field {
        "" => return (None, Type::Empty),
        "true" | "false" => Type::Boolean,
        _ if !is_code && field.parse::<f64>().is_ok_and(f64::is_finite) => Type::Number,
        _ => Type::Text,
    };
    (Some(shortened(field)), kind)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_show_values_and_columns_their_type() {
        for (value, cell, kind) in [
            (json!(null), None, Type::Empty),
            (json!(true), Some("true"), Type::Boolean),
            (json!(9_007_199_254_740_993_u64), Some("9007199254740993"), Type::Number),
            (json!("a"), Some("a"), Type::Text),
            (json!({ "a": [1] }), Some("{\"a\":[1]}"), Type::Json),
        ] {
            assert_eq!(json_cell(&value), (cell.map(str::to_owned), kind), "{value}");
        }

        for (field, kind) in [
            ("", Type::Empty),
            ("-1.5e3", Type::Number),
            ("0.5", Type::Number),
            ("00501", Type::Text),
            ("inf", Type::Text),
            ("false", Type::Boolean),
        ] {
            assert_eq!(field_cell(field).1, kind, "{field}");
        }

        let mut column = Column::new("a");
        for (seen, known) in [
            (Type::Empty, Type::Empty),
            (Type::Number, Type::Number),
            (Type::Empty, Type::Number),
            (Type::Boolean, Type::Text),
            (Type::Number, Type::Text),
        ] {
            column.add(seen);
            assert_eq!(column.r#type, known);
        }
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        let (cell, _) = field_cell(&"ä".repeat(400));
        let cell = cell.unwrap_or_default();

        assert_eq!(cell.chars().count(), 251);
        assert!(cell.ends_with('…'));
    }
}
