//! [`Columns`]: the columns of all records of a content, with the counts of their types, the
//! share of null, and an example.

use std::{collections::HashMap, fmt::Write};

use larder_protocol::quote::visible;
use serde_json::Value;

use super::words::{count, cut, number};

/// The maximum number of columns that are counted. Objects with more names are maps.
const MAX_COLUMNS: usize = 200;
/// The maximum length of a column's name in bytes.
const MAX_NAME: usize = 80;
/// The maximum length of an example in bytes.
const MAX_EXAMPLE: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Number,
    Text,
    Boolean,
    List,
    Object,
}

const COLUMN_TYPES: [(ColumnType, &str); 6] = [
    (ColumnType::Integer, "integer"),
    (ColumnType::Number, "number"),
    (ColumnType::Text, "text"),
    (ColumnType::Boolean, "boolean"),
    (ColumnType::List, "list"),
    (ColumnType::Object, "object"),
];

#[derive(Debug)]
struct Column {
    name: String,
    /// The number of values of each type.
    counts: [u64; COLUMN_TYPES.len()],
    example: Option<String>,
}

impl Column {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), counts: [0; COLUMN_TYPES.len()], example: None }
    }

    fn add(&mut self, kind: ColumnType, example: impl FnOnce() -> String) {
        self.counts[kind as usize] += 1;
        self.example.get_or_insert_with(|| {
            let example = example();
            let end = if example.len() > MAX_EXAMPLE { "…" } else { "" };
            format!("{}{end}", cut(&example, MAX_EXAMPLE))
        });
    }

    fn add_value(&mut self, value: &Value) {
        let kind = match value {
            Value::Null => return,
            Value::Bool(_) => ColumnType::Boolean,
            Value::Number(n) if n.is_f64() => ColumnType::Number,
            Value::Number(_) => ColumnType::Integer,
            Value::String(text) => {
                return self.add(ColumnType::Text, || format!("{:?}", cut(text, 2 * MAX_EXAMPLE)));
            }
            Value::Array(_) => ColumnType::List,
            Value::Object(_) => ColumnType::Object,
        };

        self.add(kind, || value.to_string());
    }

    fn add_field(&mut self, field: &str) {
        let digits = field.strip_prefix('-').unwrap_or(field);
        // A field such as 00501 is a code, not a number.
        let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");

        let kind = match field {
            "" => return,
            _ if is_code => ColumnType::Text,
            _ if field.parse::<i64>().is_ok() => ColumnType::Integer,
            _ if field.parse::<f64>().is_ok_and(f64::is_finite) => ColumnType::Number,
            _ => ColumnType::Text,
        };

        self.add(kind, || field.to_owned());
    }
}

/// The columns of the records that were added.
#[derive(Debug, Default)]
pub struct Columns {
    all: Vec<Column>,
    by_name: HashMap<String, usize>,
    /// Whether there are more than [`MAX_COLUMNS`] columns.
    has_more: bool,
    records: u64,
}

impl Columns {
    /// The columns of a table with this header.
    pub fn of_table<'a>(header: impl Iterator<Item = &'a str>) -> Self {
        let mut columns = Self::default();
        for (index, name) in header.enumerate() {
            if index == MAX_COLUMNS {
                columns.has_more = true;
                break;
            }
            // `by_name` stays empty, because two columns may have the same name.
            columns.all.push(Column::new(cut(name, MAX_NAME)));
        }
        columns
    }

    /// The number of records that were added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|column| &*column.name)
    }

    /// Adds a row of the table.
    pub fn add_row<'a>(&mut self, fields: impl Iterator<Item = &'a str>) {
        self.records += 1;
        for (column, field) in self.all.iter_mut().zip(fields) {
            column.add_field(field);
        }
    }

    /// Adds a record of JSON, with its key if it is a member of an object.
    pub fn add_json(&mut self, key: Option<&str>, value: &Value) {
        self.records += 1;
        if let Some(key) = key
            && let Some(column) = self.column("key")
        {
            column.add(ColumnType::Text, || key.to_owned());
        }

        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if let Some(column) = self.column(name) {
                        column.add_value(value);
                    }
                }
            }
            value => {
                if let Some(column) = self.column("value") {
                    column.add_value(value);
                }
            }
        }
    }

    fn column(&mut self, name: &str) -> Option<&mut Column> {
        let name = cut(name, MAX_NAME);
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None if self.all.len() == MAX_COLUMNS => {
                self.has_more = true;
                return None;
            }
            None => {
                self.by_name.insert(name.to_owned(), self.all.len());
                self.all.push(Column::new(name));
                self.all.len() - 1
            }
        };

        Some(&mut self.all[index])
    }

    /// A line for each column, in at most about `budget` bytes:
    /// `- status: integer, 12 (0.5 %) null; e.g. 200`.
    pub fn lines(&self, budget: usize) -> String {
        let mut text = String::new();
        for (index, column) in self.all.iter().enumerate() {
            let line = self.line(column);
            if text.len() + line.len() + 40 > budget && index > 0 {
                let more = (self.all.len() - index) as u64;
                let or_more = if self.has_more { " or more" } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(text, "- … {}{or_more} not listed", count(more, "column"));
                return text;
            }

            text.push_str(&line);
        }

        if self.has_more {
            let _ = writeln!(text, "- … more than {MAX_COLUMNS} columns");
        }
        text
    }

    fn line(&self, column: &Column) -> String {
        let filled: u64 = column.counts.iter().sum();

        let kinds: Vec<_> = COLUMN_TYPES
            .iter()
            .filter(|(kind, _)| column.counts[*kind as usize] > 0)
            .map(|(kind, name)| (*name, column.counts[*kind as usize]))
            .collect();

        let types = match kinds[..] {
            [] => "null".to_owned(),
            [(name, _)] => name.to_owned(),
            _ => {
                let each = kinds.iter().map(|(name, n)| format!("{name} ({})", number(*n)));
                each.collect::<Vec<_>>().join(" or ")
            }
        };

        let nulls = match self.records.saturating_sub(filled) {
            0 => String::new(),
            _ if filled == 0 => String::new(),
            missing => format!(", {} null", share(missing, self.records)),
        };

        let example =
            column.example.as_ref().map_or_else(String::new, |example| format!("; e.g. {example}"));
        let name = visible(&column.name);
        format!("- {name}: {types}{nulls}{}\n", visible(&example))
    }
}

/// `12 (0.5 %)`.
fn share(part: u64, all: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(all.max(1));
    format!("{} ({}.{} %)", number(part), per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_nulls_and_examples_are_those_of_all_records() {
        let mut columns = Columns::default();
        for n in 0..1000 {
            let id = if n == 999 { json!("last") } else { json!(n) };
            let mut record = json!({ "id": id, "tags": [n], "f": 0.5 });
            if n % 4 == 0 {
                record["rare"] = if n == 0 { Value::Null } else { json!("a\nb".repeat(30)) };
            }
            columns.add_json(None, &record);
        }
        columns.add_json(None, &json!(7));

        let lines = columns.lines(10_000);
        assert!(
            lines.contains("- id: integer (999) or text (1), 1 (0.0 %) null; e.g. 0\n"),
            "{lines}"
        );
        assert!(lines.contains("- tags: list, 1 (0.0 %) null; e.g. [0]\n"), "{lines}");
        assert!(lines.contains("- rare: text, 752 (75.1 %) null; e.g. \"a\\nba\\nb"), "{lines}");
        assert!(lines.contains("- value: integer, 1,000 (99.9 %) null; e.g. 7\n"), "{lines}");
        assert!(columns.lines(60).ends_with("- … 4 columns not listed\n"), "{}", columns.lines(60));
    }

    #[test]
    fn codes_are_text_and_empty_fields_are_null() {
        let mut columns = Columns::of_table(["zip", "price", "zip"].into_iter());
        for row in [["00501", "1", ""], ["10001", "0.5", ""], ["", "-2", ""]] {
            columns.add_row(row.into_iter());
        }

        let expected = "- zip: integer (1) or text (1), 1 (33.3 %) null; e.g. 00501\n\
            - price: integer (2) or number (1); e.g. 1\n- zip: null\n";
        assert_eq!(columns.lines(1_000), expected);
    }

    #[test]
    fn the_number_of_columns_is_bounded() {
        let mut columns = Columns::default();
        for n in 0..10_000 {
            columns.add_json(Some("k"), &json!({ format!("{n}{}", "x".repeat(100)): n }));
        }
        assert_eq!(columns.all.len(), MAX_COLUMNS);
        assert!(columns.lines(100_000).ends_with("- … more than 200 columns\n"));
    }
}
