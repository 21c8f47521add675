//! [`Columns`]: the columns of all records of a content, under their names in SQL, with their
//! types, the share of null, and an example.

use std::fmt::Write;

use larder_protocol::quote::visible;

use crate::words::{count, cut, number};
use crate::{
    notes::Note,
    typing::{ColumnNames, ColumnTyping, Field, RecordPart, TypedColumn, record_parts},
};

/// The maximum number of columns that are counted. Objects with more names are maps.
const MAX_COLUMNS: usize = 200;
/// The maximum length of a column's name that is kept, in bytes.
const MAX_NAME: usize = 1_000;
/// The maximum length of a column's name that is shown, in bytes.
const MAX_SHOWN_NAME: usize = 80;

/// The columns of the records that were added.
#[derive(Debug, Default)]
pub struct Columns {
    names: ColumnNames,
    typings: Vec<ColumnTyping>,
    /// Whether there are more than [`MAX_COLUMNS`] columns.
    has_more: bool,
    records: u64,
}

impl Columns {
    /// The columns of a table with this header.
    pub fn of_table<'a>(header: impl Iterator<Item = &'a str>) -> Self {
        let mut header = header.map(|name| cut(name, MAX_NAME));
        let names = ColumnNames::of_header(header.by_ref().take(MAX_COLUMNS));
        let has_more = header.next().is_some();

        let mut typings = Vec::new();
        typings.resize_with(names.len(), ColumnTyping::default);
        Self { names, typings, has_more, records: 0 }
    }

    /// The number of records that were added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The names in SQL, in their order.
    pub fn names(&mut self) -> &[String] {
        self.names.resolve();
        self.names.names()
    }

    /// Adds a row of the table.
    pub fn add_row<'a>(&mut self, fields: impl Iterator<Item = &'a str>) {
        for (column, field) in fields.enumerate() {
            if column == MAX_COLUMNS {
                self.has_more = true;
                break;
            }
            if column == self.names.len() {
                self.names.add("");
            }
            self.add(column, Field::Delimited(field));
        }
        self.records += 1;
    }

    /// Adds a record of JSON; `is_member` if it is a member of an object, `"name": value`. Returns
    /// whether it is JSON.
    pub fn add_json(&mut self, json: &str, is_member: bool) -> bool {
        let added = record_parts(json, is_member, &mut |part, field| self.add_part(part, field));
        self.records += 1;
        added.is_ok()
    }

    fn add_part(&mut self, part: RecordPart<'_>, field: Field<'_>) {
        let part = match part {
            RecordPart::Member(name) => RecordPart::Member(cut(name, MAX_NAME)),
            part => part,
        };
        if self.names.len() >= MAX_COLUMNS && self.names.known(part).is_none() {
            self.has_more = true;
            return;
        }

        let column = self.names.of_part(part);
        self.add(column, field);
    }

    fn add(&mut self, column: usize, field: Field<'_>) {
        if column >= self.typings.len() {
            self.typings.resize_with(column + 1, ColumnTyping::default);
        }
        self.typings[column].add(self.records, field);
    }

    /// A line for each column, in at most about `budget` bytes:
    /// `- status: integer, 12 (0.5 %) null; e.g. 200`.
    pub fn lines(mut self, budget: usize) -> String {
        self.names.resolve();
        let renamed: Vec<_> = self.names.renamed();
        let columns = std::mem::take(&mut self.typings).into_iter().map(ColumnTyping::finish);
        let total = columns.len();
        let mut text = String::new();

        for (index, (column, name)) in columns.zip(self.names.names()).enumerate() {
            let renaming = renamed.iter().filter(|renamed| renamed.column == index);
            let notes = renaming.map(|renamed| renamed.note(&self.names));
            let line = line(&column, name, self.records, notes);

            if text.len() + line.len() + 40 > budget && index > 0 {
                let more = (total - index) as u64;
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
}

fn line(
    column: &TypedColumn,
    name: &str,
    records: u64,
    renaming: impl Iterator<Item = Note>,
) -> String {
    let types = match &column.kinds()[..] {
        [(name, _)] => (*name).to_owned(),
        kinds => {
            let each = kinds.iter().map(|(name, n)| format!("{name} ({})", number(*n)));
            each.collect::<Vec<_>>().join(" or ")
        }
    };

    let filled = column.filled();
    let nulls = match records.saturating_sub(filled) {
        0 => String::new(),
        _ if filled == 0 => String::new(),
        missing => format!(", {} null", share(missing, records)),
    };

    let example = column.example().map(|example| format!("; e.g. {}", example.text));
    let mut line = format!("{types}{nulls}{}", example.unwrap_or_default());
    for note in renaming.chain(column.notes(name)) {
        line.push_str("; ");
        line.push_str(&note.text);
    }

    format!("- {}: {}\n", visible(cut(name, MAX_SHOWN_NAME)), visible(&line))
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

    fn lines_of(columns: Columns) -> String {
        columns.lines(10_000)
    }

    fn table(header: &[&str], rows: &[&[&str]]) -> String {
        let mut columns = Columns::of_table(header.iter().copied());
        for row in rows {
            columns.add_row(row.iter().copied());
        }
        lines_of(columns)
    }

    fn many() -> Columns {
        let mut columns = Columns::default();
        for n in 0..1000 {
            let id = if n == 999 { json!("last") } else { json!(n) };
            let mut record = json!({ "id": id, "tags": [n], "f": 0.5 });
            if n % 4 == 0 {
                record["rare"] =
                    if n == 0 { serde_json::Value::Null } else { json!("a\nb".repeat(30)) };
            }
            assert!(columns.add_json(&record.to_string(), false));
        }
        assert!(columns.add_json("7", false));
        columns
    }

    #[test]
    fn types_nulls_and_examples_are_those_of_all_records() {
        let lines = lines_of(many());
        assert!(
            lines.contains("- id: integer (999) or text (1), 1 (0.0 %) null; e.g. 0\n"),
            "{lines}"
        );
        assert!(lines.contains("- tags: list, 1 (0.0 %) null; e.g. [0]\n"), "{lines}");
        assert!(lines.contains("- rare: text, 752 (75.1 %) null; e.g. \"a\\nba\\nb"), "{lines}");
        assert!(lines.contains("- value: integer, 1,000 (99.9 %) null; e.g. 7\n"), "{lines}");

        let few = many().lines(60);
        assert!(few.ends_with("- … 4 columns not listed\n"), "{few}");
    }

    #[test]
    fn columns_have_the_type_and_the_name_that_sql_gives_them() {
        let lines = table(
            &["zip", "price", "zip", ""],
            &[&["00501", "1", "", "true"], &["10001", "NA", "", "x", "5"], &["", "-2", ""]],
        );
        let expected = "- zip: text, 1 (33.3 %) null; e.g. 00501\n\
            - price: integer, 1 (33.3 %) null; e.g. 1; 1 of 3 is NA, taken as null (first in record 2)\n\
            - zip_2: null; named zip in the content, as column zip is\n\
            - column_4: text, 1 (33.3 %) null; e.g. true; without a name in the content\n\
            - column_5: integer, 2 (66.6 %) null; e.g. 5; without a name in the content\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_member_named_key_is_not_the_key_of_its_record() {
        let mut columns = Columns::default();
        assert!(columns.add_json("\"US\": {\"key\": \"x\"}", true));
        assert!(!columns.add_json("\"DE\": {\"key\": ", true));
        let lines = lines_of(columns);
        assert!(
            lines.starts_with("- key: text, 1 (50.0 %) null; e.g. US\n- key_2: text"),
            "{lines}"
        );
    }

    #[test]
    fn the_number_of_columns_is_bounded() {
        let mut columns = Columns::default();
        for n in 0..10_000 {
            let record = json!({ format!("{n}{}", "x".repeat(100)): n }).to_string();
            columns.add_json(&format!("\"k\":{record}"), true);
        }
        assert_eq!(columns.names().len(), MAX_COLUMNS);
        assert!(columns.lines(100_000).ends_with("- … more than 200 columns\n"));
    }
}
