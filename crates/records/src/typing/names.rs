//! [`ColumnNames`]: the names of columns in SQL.

use std::collections::HashMap;

use larder_protocol::quote::shortened;

use super::RecordPart;
use crate::notes::{Note, NoteKind};

/// The column of the names of records that are members of an object.
const KEY: &str = "key";
/// The column of records that are no objects.
const VALUE: &str = "value";

/// The columns of a table, in the order in which they are met, and their names: each is reachable
/// under a name of its own, although names of the content may be empty, occur twice, or differ in
/// the case of letters, which SQL does not distinguish.
///
/// A name of the content goes to its first column. `id_2` is a further column `id`, and `column_3`
/// the third column, if it has no name.
#[derive(Debug, Clone, Default)]
pub struct ColumnNames {
    /// The names in the content.
    written: Vec<String>,
    /// The names in SQL, of the first columns.
    names: Vec<String>,
    /// The names in SQL that are taken, in lower case, with their columns.
    taken: HashMap<String, usize>,
    /// The last number that was appended to a name, by the name in lower case.
    numbers: HashMap<String, usize>,
    /// The members of objects, by their exact names.
    members: HashMap<String, usize>,
    /// The column of the records' own keys.
    record_key: Option<usize>,
}

/// A column whose name in SQL is not that of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedColumn {
    /// The index of the column.
    pub column: usize,
    /// The name in the content.
    pub written: String,
    /// The column that has this name in SQL; `None` if the name is empty or not possible.
    pub taken_by: Option<usize>,
}

impl RenamedColumn {
    /// The note about the column, which is one of these.
    pub fn note(&self, names: &ColumnNames) -> Note {
        let name = |column: usize| names.names().get(column).cloned();
        let text = match self.taken_by.and_then(name) {
            Some(other) => format!(
                "named {} in the content, as column {} is",
                shortened(&self.written),
                shortened(&other)
            ),
            None => "without a name in the content".to_owned(),
        };

        let column = name(self.column);
        Note { kind: NoteKind::Renamed, table: None, column, count: 1, first: None, text }
    }
}

impl ColumnNames {
    /// The columns of a header, or of a result.
    pub fn of_header<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        let mut columns = Self::default();
        columns.written.extend(header.into_iter().map(str::to_owned));
        columns.resolve();
        columns
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.written.len()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Adds a column, and returns its index.
    pub fn add(&mut self, name: &str) -> usize {
        self.written.push(name.to_owned());
        self.written.len() - 1
    }

    /// The column of the members with this name, which may be a new one.
    #[inline]
    fn member(&mut self, name: &str) -> usize {
        if let Some(column) = self.members.get(name) {
            return *column;
        }

        let column = self.add(name);
        self.members.insert(name.to_owned(), column);
        column
    }

    /// The column of a part of JSON records, which may be a new one. The names of records are in
    /// the column `key`, and a member `key` of a record has another column.
    #[inline]
    pub fn of_part(&mut self, part: RecordPart<'_>) -> usize {
        match part {
            RecordPart::Member(name) => self.member(name),
            RecordPart::Value => self.member(VALUE),
            RecordPart::Key => match self.record_key {
                Some(column) => column,
                None => {
                    let column = self.add(KEY);
                    self.record_key = Some(column);
                    column
                }
            },
        }
    }

    /// The column of a part of JSON records, if there is one.
    pub fn known(&self, part: RecordPart<'_>) -> Option<usize> {
        match part {
            RecordPart::Member(name) => self.members.get(name).copied(),
            RecordPart::Value => self.members.get(VALUE).copied(),
            RecordPart::Key => self.record_key,
        }
    }

    /// Gives names to the columns that were added since the last call. The names that columns
    /// have stay; of the new columns, those with a name of their own come first.
    pub fn resolve(&mut self) {
        let first = self.names.len();
        let mut waiting = Vec::new();

        for column in first..self.written.len() {
            let name = possible_name(&self.written[column]);
            let is_free = !name.is_empty() && !self.taken.contains_key(&name.to_ascii_lowercase());
            if is_free {
                self.taken.insert(name.to_ascii_lowercase(), column);
            } else {
                waiting.push(column);
            }
            self.names.push(if is_free { name } else { String::new() });
        }

        for column in waiting {
            let name = self.free_name(column);
            self.taken.insert(name.to_ascii_lowercase(), column);
            self.names[column] = name;
        }
    }

    /// A name with a number, for a column whose own name is missing or taken.
    fn free_name(&mut self, column: usize) -> String {
        let name = possible_name(&self.written[column]);
        let base = if name.is_empty() { format!("column_{}", column + 1) } else { name };
        let key = base.to_ascii_lowercase();
        if !self.taken.contains_key(&key) {
            return base;
        }

        // Counts on, because thousands of columns may have one name.
        let number = self.numbers.entry(key).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{base}_{number}");
            if !self.taken.contains_key(&name.to_ascii_lowercase()) {
                return name;
            }
        }
    }

    /// The names in SQL, after [`resolve`](Self::resolve).
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The column with this name in SQL.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.taken.get(&name.to_ascii_lowercase()).copied()
    }

    /// The columns whose names in SQL are not those of the content. Blanks around a name do not
    /// count.
    pub fn renamed(&self) -> Vec<RenamedColumn> {
        let columns = self.written.iter().zip(&self.names).enumerate();
        columns
            .filter(|(_, (written, name))| written.trim() != name.as_str())
            .map(|(column, (written, _))| {
                let taken_by = self.find(&possible_name(written)).filter(|by| *by != column);
                RenamedColumn { column, written: written.clone(), taken_by }
            })
            .collect()
    }
}

/// The name without blanks around it, and without the character that ends texts in SQLite.
fn possible_name(name: &str) -> String {
    name.trim().replace('\0', "\u{fffd}")
}
