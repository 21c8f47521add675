//! [`Notes`]: what an answer has to say about how the content was read.

use std::fmt::Write;

use larder_protocol::quote::visible;
use serde::{Deserialize, Serialize};

use super::words::{count, cut};

/// The most notes that are kept.
const MAX_NOTES: usize = 50;
/// The longest name of a column in a note, in bytes.
const MAX_NAME: usize = 80;

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Words for no value were taken for null.
    Null,
    /// A column of numbers and other texts is text.
    Text,
    /// Numbers lose digits, or may be no numbers.
    Number,
    /// Integers are beyond 64 bits.
    BigInteger,
    /// A column has another name than in the content.
    Renamed,
    /// Rows have more or fewer fields than the header.
    Ragged,
    /// Lines or records were left out.
    Skipped,
    /// Content was changed to be readable.
    Repaired,
    /// A choice was made that another argument of the query changes.
    Chosen,
}

impl NoteKind {
    /// The name, as programs read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Text => "text",
            Self::Number => "number",
            Self::BigInteger => "big_integer",
            Self::Renamed => "renamed",
            Self::Ragged => "ragged",
            Self::Skipped => "skipped",
            Self::Repaired => "repaired",
            Self::Chosen => "chosen",
        }
    }
}

/// A note about the content that a query, a description or a page reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The subject.
    pub kind: NoteKind,
    /// The table, in a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The column, by its name in SQL; `None` if the note is about whole records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// How many values, records or lines it concerns.
    pub count: u64,
    /// The number of the first of these records, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The note in words, without table and column.
    pub text: String,
}

impl Note {
    /// The note as a part of a sentence: `price: 1 of 3 is NA, taken as null`. `with_table` names
    /// the table, too.
    pub fn line(&self, with_table: bool) -> String {
        let mut line = String::new();
        if let Some(table) = self.table.as_ref().filter(|_| with_table) {
            line.push_str(table);
            line.push_str(if self.column.is_some() { "." } else { ": " });
        }
        if let Some(column) = &self.column {
            // Writing to a string cannot fail.
            let _ = write!(line, "{}: ", visible(cut(column, MAX_NAME)));
        }

        line.push_str(&self.text);
        line
    }
}

/// The notes of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    notes: Vec<Note>,
    /// How many were left out.
    #[serde(default)]
    omitted: u64,
}

impl Notes {
    /// Adds a note. Of many notes, the later ones are only counted.
    pub fn add(&mut self, note: Note) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// The notes that were kept.
    pub fn iter(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter()
    }

    /// The notes in words, in about `budget` bytes, which has room for the first one.
    pub fn text(&self, budget: usize) -> String {
        let mut tables = self.notes.iter().filter_map(|note| note.table.as_ref());
        let first = tables.next();
        let with_table = tables.any(|table| Some(table) != first);
        let mut text = String::new();

        for (index, note) in self.notes.iter().enumerate() {
            let line = note.line(with_table);
            if index > 0 && text.len() + line.len() > budget {
                let more = (self.notes.len() - index) as u64 + self.omitted;
                let _ = write!(text, "; {}", count(more, "further note"));
                return text;
            }

            text.push_str(if index > 0 { "; " } else { "" });
            text.push_str(&line);
        }

        if self.omitted > 0 {
            let _ = write!(text, "; {}", count(self.omitted, "further note"));
        }
        text
    }
}

impl Extend<Note> for Notes {
    fn extend<I: IntoIterator<Item = Note>>(&mut self, notes: I) {
        notes.into_iter().for_each(|note| self.add(note));
    }
}

impl<'a> IntoIterator for &'a Notes {
    type Item = &'a Note;
    type IntoIter = std::slice::Iter<'a, Note>;

    fn into_iter(self) -> Self::IntoIter {
        self.notes.iter()
    }
}
