//! [`Repairs`]: what was repaired, with counts.

use crate::{
    notes::{Note, NoteKind},
    words::count,
};

/// A repair of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    /// NaN or an infinity became null.
    NotANumber,
    /// A number beyond the range of doubles became the largest one.
    Range,
    /// A number that is written otherwise, such as `+1`, `.5` or `0x1F`.
    Number,
    /// A number with zeros in front became a text.
    Code,
    /// A half of a surrogate pair, or bytes that are not UTF-8, became U+FFFD.
    Character,
    /// An escape or a control character that JSON does not have.
    Escape,
    /// A comment was left out.
    Comment,
    /// A comma before an end was left out.
    Comma,
    /// `None`, `True`, `undefined`, a tuple, or a text in single quotes.
    Literal,
    /// A name without quotes.
    Key,
    /// A call such as `Decimal('1.5')`.
    Call,
    /// The values are one after another.
    Several(u64),
    /// The JSON is in a block of Markdown.
    Fence,
    /// Text before and after the JSON, in bytes.
    Prose(u64),
    /// The JSON is a text within JSON.
    Unwrapped,
    /// The content ends within a value.
    Cut,
}

impl Repair {
    /// Tells a repair that was made `times` times.
    fn told(self, times: u64) -> String {
        let many = |noun| count(times, noun);
        match self {
            Self::NotANumber => format!("{} (NaN, Infinity) taken as null", many("value")),
            Self::Range => {
                format!("{} beyond the range taken as 1.7976931348623157e308", many("number"))
            }
            Self::Number => format!("{} in another notation", many("number")),
            Self::Code => format!("{} with zeros in front taken as text", many("number")),
            Self::Character => format!("{} not Unicode taken as U+FFFD", many("character")),
            Self::Escape => format!("{} in texts repaired", many("escape")),
            Self::Comment => format!("{} left out", many("comment")),
            Self::Comma => format!("{} left out", many("superfluous comma")),
            Self::Literal => format!("{} of Python or JavaScript read", many("literal")),
            Self::Key => format!("{} without quotes read", many("name")),
            Self::Call => format!("{} read as its argument or as text", many("call")),
            Self::Several(values) => {
                format!("{} one after another, each a record", count(values, "JSON value"))
            }
            Self::Fence => {
                "JSON is read from a block of Markdown, the text around it left out".into()
            }
            Self::Prose(bytes) => {
                format!("{} of text before or after the JSON left out", count(bytes, "byte"))
            }
            Self::Unwrapped => "JSON that is a text within JSON is read as JSON".into(),
            Self::Cut => "the content ends within a value: what is incomplete is left out".into(),
        }
    }

    fn is_alike(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The repairs of a content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repairs(Vec<(Repair, u64, u64)>);

impl Repairs {
    /// Adds a repair in the record with this number.
    pub(crate) fn add(&mut self, repair: Repair, record: u64) {
        self.add_many(repair, 1, record);
    }

    fn add_many(&mut self, repair: Repair, times: u64, record: u64) {
        match self.0.iter_mut().find(|(known, ..)| known.is_alike(repair)) {
            Some((_, count, _)) => *count += times,
            None => self.0.push((repair, times, record)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (repair, times, record) in &other.0 {
            self.add_many(*repair, *times, *record);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        let note = |(repair, times, _): &(Repair, u64, u64)| Note {
            kind: match repair {
                Repair::Cut | Repair::Prose(_) => NoteKind::Skipped,
                _ => NoteKind::Repaired,
            },
            table: None,
            column: None,
            count: match repair {
                Repair::Several(values) => *values,
                _ => *times,
            },
            first: None,
            text: repair.told(*times),
        };
        self.0.iter().map(note).collect()
    }
}
