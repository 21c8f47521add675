//! [`Misfits`]: rows that do not have as many fields as the table has columns.

use serde::{Deserialize, Serialize};

use super::{
    notes::{Note, NoteKind},
    words::{count, number},
};

/// The rows of a table that do not fit its header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfits {
    /// Rows with fewer fields.
    short: u64,
    /// Rows with more fields.
    long: u64,
    /// The first of them: its number, counted from 1, its fields, and the columns.
    first: Option<(u64, u64, u64)>,
}

impl Misfits {
    /// Counts a row if it does not fit. `row` is its number, counted from 1.
    pub fn add(&mut self, row: u64, fields: usize, columns: usize) {
        if fields == columns {
            return;
        }

        if fields < columns {
            self.short += 1;
        } else {
            self.long += 1;
        }
        self.first.get_or_insert((row, fields as u64, columns as u64));
    }

    /// The rows that do not fit as a note; `None` if all fit.
    pub fn note(&self) -> Option<Note> {
        let (row, ..) = self.first?;
        Some(Note {
            kind: NoteKind::Ragged,
            table: None,
            column: None,
            count: self.short + self.long,
            first: Some(row - 1),
            text: self.told()?,
        })
    }

    /// How many rows do not fit, the first of them, and how they are read; `None` if all fit.
    pub fn told(&self) -> Option<String> {
        let (row, fields, columns) = self.first?;
        let rows = count(self.short + self.long, "row");
        let verb = if self.short + self.long == 1 { "does" } else { "do" };

        let done = match (self.short, self.long) {
            (_, 0) => "missing fields are null".to_owned(),
            (0, _) => format!("further fields are in column_{} and so on", columns + 1),
            (short, long) => format!(
                "missing fields of {} are null, further fields of {} are in column_{} and so on",
                number(short),
                number(long),
                columns + 1
            ),
        };

        Some(format!(
            "{rows} {verb} not have {}, first row {} with {}; {done}",
            count(columns, "field"),
            number(row),
            count(fields, "field")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misfits_are_counted_and_the_first_is_named() {
        let mut misfits = Misfits::default();
        assert_eq!(misfits.told(), None);

        misfits.add(1, 3, 3);
        assert_eq!(misfits.told(), None);

        misfits.add(2, 2, 3);
        let one =
            "1 row does not have 3 fields, first row 2 with 2 fields; missing fields are null";
        assert_eq!(misfits.told().as_deref(), Some(one));

        misfits.add(1_700, 4, 3);
        let both = "2 rows do not have 3 fields, first row 2 with 2 fields; missing fields of 1 are null, further fields of 1 are in column_4 and so on";
        assert_eq!(misfits.told().as_deref(), Some(both));
    }
}
