//! [`TypedColumn`]: the type of a column, what its values were, and the notes about them.

use larder_protocol::quote::visible;

use super::{
    column_type::ColumnType,
    tally::{Decimals, Example, Tallies, Tally, TallySort},
};
use crate::{
    notes::{Note, NoteKind},
    words::number,
};

/// The most words for no value that a note names.
const MAX_WORDS: usize = 4;

/// The sorts of values that do not look like numbers.
const TEXTS: [TallySort; 4] =
    [TallySort::Text, TallySort::Date, TallySort::Boolean, TallySort::NullWord];

/// A word for no value, and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullWord {
    pub(super) word: u8,
    /// The number of values.
    pub count: u64,
    /// The word, as it is written first.
    pub written: String,
}

/// A column with its type.
#[derive(Debug, Clone)]
pub struct TypedColumn {
    pub(super) column_type: ColumnType,
    pub(super) tallies: Tallies,
    pub(super) is_json: bool,
    pub(super) decimals: Decimals,
    pub(super) pluses: Tally,
    pub(super) with_blanks: Tally,
    pub(super) with_escapes: Tally,
    pub(super) words: Vec<NullWord>,
    /// Whether the column is text because its numbers are versions.
    pub(super) has_versions: bool,
    /// Whether numbers with zeros at their end may be no numbers, or the same as others.
    pub(super) is_ambiguous: bool,
}

impl TypedColumn {
    /// The type.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    fn tally(&self, sort: TallySort) -> &Tally {
        &self.tallies[sort as usize]
    }

    fn count(&self, sort: TallySort) -> u64 {
        self.tally(sort).count
    }

    /// The number of values that are not null.
    pub fn filled(&self) -> u64 {
        let empty = self.count(TallySort::Null);
        let blank = self.count(TallySort::Blank);
        // Blanks and words are values of texts.
        let unread = if self.column_type.has_null_words() || self.column_type == ColumnType::Null {
            blank + self.count(TallySort::NullWord)
        } else {
            0
        };
        self.tallies.iter().map(|tally| tally.count).sum::<u64>() - empty - unread
    }

    /// The number of values that were taken for null because of a word.
    pub fn null_words(&self) -> u64 {
        if !self.column_type.has_null_words() {
            return 0;
        }
        let empty_texts = if self.is_json { self.count(TallySort::Blank) } else { 0 };
        self.count(TallySort::NullWord) + empty_texts
    }

    /// The number of values that look like numbers, whatever the type is.
    pub fn numeric(&self) -> u64 {
        [
            TallySort::Integer,
            TallySort::BigInteger,
            TallySort::Decimal,
            TallySort::Code,
            TallySort::NumericText,
        ]
        .map(|sort| self.count(sort))
        .iter()
        .sum()
    }

    /// Whether there are integers.
    pub fn has_integers(&self) -> bool {
        self.count(TallySort::Integer) + self.count(TallySort::BigInteger) > 0
    }

    /// Whether integers beyond 64 bits are texts in SQL.
    pub fn has_big_integers_as_text(&self) -> bool {
        let is_text = matches!(self.column_type, ColumnType::BigInteger | ColumnType::Mixed);
        is_text && self.count(TallySort::BigInteger) > 0
    }

    /// Whether there are numbers or booleans, which are numbers in SQL.
    pub fn has_numbers(&self) -> bool {
        self.has_integers() || self.count(TallySort::Decimal) + self.count(TallySort::Boolean) > 0
    }

    /// Whether there are texts that look like numbers, such as `"42.5"` in JSON.
    pub fn has_numeric_texts(&self) -> bool {
        let has_pluses = self.column_type == ColumnType::Text && self.pluses.count > 0;
        has_pluses || self.count(TallySort::NumericText) + self.count(TallySort::Code) > 0
    }

    /// The number of texts with blanks around them, and the first of them.
    pub fn with_blanks(&self) -> Option<(u64, &Example)> {
        Some((self.with_blanks.count, self.with_blanks.first.as_deref()?))
    }

    /// The first value that is not null.
    pub fn example(&self) -> Option<&Example> {
        let skipped = if self.column_type.has_null_words() { 3 } else { 1 };
        let firsts = self.tallies.iter().skip(skipped).filter_map(|tally| tally.first.as_deref());
        firsts.min_by_key(|first| first.record)
    }

    /// The first value because of which the column is text, although others look like numbers: a
    /// text, a code such as `00501` or `+44`, or a version such as `3.10`.
    pub fn why_text(&self) -> Option<&Example> {
        if self.column_type != ColumnType::Text || self.numeric() == 0 {
            return None;
        }
        if self.has_versions {
            return self.decimals.with_zeros.first.as_deref();
        }
        let first = self.first_of(&TEXTS);
        let first = first.or_else(|| self.first_of(&[TallySort::Code, TallySort::NumericText]));
        first.or(self.pluses.first.as_deref())
    }

    fn first_of(&self, sorts: &[TallySort]) -> Option<&Example> {
        let firsts = sorts.iter().filter_map(|sort| self.tally(*sort).first.as_deref());
        firsts.min_by_key(|first| first.record)
    }

    /// The names of the types of the values, with their counts; a single one unless the type is
    /// [`ColumnType::Mixed`].
    pub fn kinds(&self) -> Vec<(&'static str, u64)> {
        if self.column_type != ColumnType::Mixed {
            return vec![(self.column_type.name(), self.filled())];
        }

        let sum = |sorts: &[TallySort]| sorts.iter().map(|sort| self.count(*sort)).sum::<u64>();
        let texts = [
            TallySort::Text,
            TallySort::Date,
            TallySort::NumericText,
            TallySort::Code,
            TallySort::NullWord,
            TallySort::Blank,
        ];
        let kinds = [
            ("integer", sum(&[TallySort::Integer, TallySort::BigInteger])),
            ("number", sum(&[TallySort::Decimal])),
            ("text", sum(&texts)),
            ("boolean", sum(&[TallySort::Boolean])),
            ("list", sum(&[TallySort::List])),
            ("object", sum(&[TallySort::Object])),
        ];
        kinds.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// The notes about the column, which has this name in SQL.
    pub fn notes(&self, column: &str) -> Vec<Note> {
        let all = [
            self.null_note(),
            self.text_note(),
            self.big_integer_note(),
            self.ambiguous_note(),
            self.rounded_note(),
            self.exponent_note(),
            self.boolean_note(),
            self.escapes_note(column),
        ];
        let named = all.into_iter().flatten();
        named.map(|note| Note { column: Some(column.to_owned()), ..note }).collect()
    }

    /// `2 of 3 are`, of the values that are not empty.
    fn share(&self, count: u64) -> String {
        let blanks = if self.is_json { 0 } else { self.count(TallySort::Blank) };
        let all: u64 = self.tallies.iter().map(|tally| tally.count).sum();
        let all = all - self.count(TallySort::Null) - blanks;
        let verb = if count == 1 { "is" } else { "are" };
        format!("{} of {} {verb}", number(count), number(all))
    }

    fn null_note(&self) -> Option<Note> {
        let count = self.null_words();
        if count == 0 {
            return None;
        }

        let mut words: Vec<_> = self.words.iter().take(MAX_WORDS).map(written_word).collect();
        if self.is_json && self.count(TallySort::Blank) > 0 {
            words.push("\"\"".to_owned());
        }
        let listed: u64 = self.words.iter().take(MAX_WORDS).map(|word| word.count).sum();
        if listed < self.count(TallySort::NullWord) {
            words.push("other words".to_owned());
        }

        let firsts = [TallySort::NullWord, TallySort::Blank].map(|sort| &self.tally(sort).first);
        let first = firsts.into_iter().flatten().map(|first| first.record).min();
        let place = first.map_or_else(String::new, |record| {
            format!(" (first in record {})", number(record + 1))
        });
        let text = format!("{} {}, taken as null{place}", self.share(count), words.join(" or "));
        Some(note(NoteKind::Null, count, first, text))
    }

    /// A column of CSV is text, although most of its values look like numbers. Codes alone say so
    /// themselves.
    fn text_note(&self) -> Option<Note> {
        let why = self.why_text()?;
        let shown = why.shown();
        if self.has_versions {
            let zeros = &self.decimals.with_zeros;
            let text = format!(
                "text as written, as of versions: {} like {shown}, whose last zero others lack",
                self.share(zeros.count)
            );
            return Some(note(NoteKind::Text, zeros.count, Some(why.record), text));
        }

        let others: u64 = TEXTS.iter().map(|sort| self.count(*sort)).sum();
        let is_told = !self.is_json && others > 0 && others <= self.numeric();
        let first = self.first_of(&TEXTS).filter(|_| is_told)?;
        let numbers = if others == 1 { "no number" } else { "no numbers" };
        let text = format!(
            "text as written: {} {numbers}, such as {} (record {})",
            self.share(others),
            first.shown(),
            number(first.record + 1)
        );
        Some(note(NoteKind::Text, others, Some(first.record), text))
    }

    fn big_integer_note(&self) -> Option<Note> {
        let tally = self.tally(TallySort::BigInteger);
        let first = tally.first.as_deref()?;
        if self.column_type != ColumnType::BigInteger {
            return None;
        }

        let text = format!(
            "{} beyond 64 bits, such as {}: all are text as written, compared as numbers",
            self.share(tally.count),
            first.shown()
        );
        Some(note(NoteKind::BigInteger, tally.count, Some(first.record), text))
    }

    fn ambiguous_note(&self) -> Option<Note> {
        if self.column_type != ColumnType::Number || !self.is_ambiguous {
            return None;
        }
        self.number_note(
            &self.decimals.with_zeros,
            "written with zeros at the end and read as a number",
        )
    }

    fn rounded_note(&self) -> Option<Note> {
        let is_number = self.column_type == ColumnType::Number;
        let big = self.tally(TallySort::BigInteger);
        let tally = if self.decimals.rounded.count > 0 { &self.decimals.rounded } else { big };
        is_number.then(|| self.number_note(tally, "rounded to 64 bits"))?
    }

    fn exponent_note(&self) -> Option<Note> {
        let bare = &self.decimals.bare_exponents;
        let is_only = bare.count == self.count(TallySort::Decimal) && !self.is_json;
        if self.column_type != ColumnType::Number || !is_only {
            return None;
        }
        self.number_note(bare, "read as a number with an exponent")
    }

    fn boolean_note(&self) -> Option<Note> {
        let tally = self.tally(TallySort::Boolean);
        let first = tally.first.as_deref()?;
        let has_others = self.has_integers() || self.count(TallySort::Decimal) > 0;
        if self.column_type != ColumnType::Mixed || !has_others {
            return None;
        }

        let text = format!("{} true or false, which sql reads as 1 and 0", self.share(tally.count));
        Some(note(NoteKind::Number, tally.count, Some(first.record), text))
    }

    fn escapes_note(&self, column: &str) -> Option<Note> {
        let tally = &self.with_escapes;
        let first = tally.first.as_deref()?;
        let text = format!(
            "{} coloured by terminal escapes, which stand between letters: plain({column}) removes them",
            self.share(tally.count)
        );
        Some(note(NoteKind::Text, tally.count, Some(first.record), text))
    }

    fn number_note(&self, tally: &Tally, how: &str) -> Option<Note> {
        let first = tally.first.as_deref()?;
        let text = format!("{} {how}, such as {}", self.share(tally.count), first.shown());
        Some(note(NoteKind::Number, tally.count, Some(first.record), text))
    }
}

fn written_word(word: &NullWord) -> String {
    visible(word.written.trim()).into_owned()
}

fn note(kind: NoteKind, count: u64, first: Option<u64>, text: String) -> Note {
    Note { kind, table: None, column: None, count, first, text }
}
