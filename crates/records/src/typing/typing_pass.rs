//! [`ColumnTyping`]: collects what the type of a column depends on, value by value.

use super::{
    Field,
    class::Class,
    column_type::ColumnType,
    tally::{Decimals, Example, SORTS, Tally, TallySort},
    typed_column::{NullWord, TypedColumn},
};
use crate::has_escapes;

/// The most spellings of words for no value that are counted by themselves.
const MAX_WORDS: usize = 8;

/// Collects the values of one column.
#[derive(Debug, Clone, Default)]
pub struct ColumnTyping {
    tallies: [Tally; SORTS],
    /// Whether values came from JSON, which tells its types.
    is_json: bool,
    decimals: Decimals,
    /// The numbers with a plus sign in front.
    pluses: Tally,
    /// The texts with blanks around them.
    with_blanks: Tally,
    /// The texts with terminal escapes.
    with_escapes: Tally,
    words: Vec<NullWord>,
}

impl ColumnTyping {
    /// Adds the value of a record, by its number.
    #[inline]
    pub fn add(&mut self, record: u64, field: Field<'_>) {
        let class = Class::of(field);
        self.is_json |= matches!(field, Field::Json(_));

        let sort = match class {
            Class::Null => TallySort::Null,
            Class::Blank => TallySort::Blank,
            Class::NullWord(_) => TallySort::NullWord,
            Class::Boolean => TallySort::Boolean,
            Class::Integer => TallySort::Integer,
            Class::BigInteger => TallySort::BigInteger,
            Class::Decimal(_) => TallySort::Decimal,
            Class::Date => TallySort::Date,
            Class::Code => TallySort::Code,
            Class::NumericText => TallySort::NumericText,
            Class::Text => TallySort::Text,
            Class::List => TallySort::List,
            Class::Object => TallySort::Object,
        };
        self.tallies[sort as usize].add(record, field);

        let is_number = matches!(class, Class::Integer | Class::BigInteger | Class::Decimal(_));
        if is_number && has_plus(field) {
            self.pluses.add(record, field);
        }
        match class {
            Class::Decimal(decimal) => self.decimals.add(&decimal, record, field),
            Class::NullWord(word) => self.add_word(word, record, field),
            Class::Text => self.add_text(record, field),
            _ => {}
        }
    }

    #[inline]
    fn add_text(&mut self, record: u64, field: Field<'_>) {
        let text = match field {
            Field::Delimited(text) | Field::Text(text) => text,
            Field::Json(json) => json.trim_matches('"'),
            Field::Number(_) => return,
        };
        if has_blanks(text) {
            self.with_blanks.add(record, field);
        }
        if has_escapes(text.as_bytes()) || text.contains("\\u001b") {
            self.with_escapes.add(record, field);
        }
    }

    fn add_word(&mut self, word: u8, record: u64, field: Field<'_>) {
        if let Some(known) = self.words.iter_mut().find(|known| known.word == word) {
            known.count += 1;
            return;
        }

        if self.words.len() < MAX_WORDS {
            let written = Example::new(record, field).text;
            self.words.push(NullWord { word, count: 1, written });
        }
    }

    fn count(&self, sort: TallySort) -> u64 {
        self.tallies[sort as usize].count
    }

    fn numbers(&self) -> u64 {
        self.count(TallySort::Integer)
            + self.count(TallySort::BigInteger)
            + self.count(TallySort::Decimal)
    }

    /// The type of the column with the values so far.
    pub fn column_type(&self) -> ColumnType {
        let count = |sort| self.count(sort);
        let numbers = self.numbers();
        let words = count(TallySort::NullWord);

        let texts = count(TallySort::Text) + count(TallySort::Code) + count(TallySort::NumericText);
        // An empty string of JSON is a value, unless it stands among numbers.
        let blanks = if self.is_json { count(TallySort::Blank) } else { 0 };
        let groups = [
            (count(TallySort::Boolean), ColumnType::Boolean),
            (numbers, self.number_type()),
            (count(TallySort::Date), ColumnType::DateTime),
            (texts, ColumnType::Text),
            (count(TallySort::List), ColumnType::List),
            (count(TallySort::Object), ColumnType::Object),
        ];

        let mut present = groups.iter().filter(|(count, _)| *count > 0).map(|(_, kind)| *kind);
        match (present.next(), present.next(), present.next()) {
            (None, ..) if words + blanks == 0 => ColumnType::Null,
            (Some(only), None, _) if only.has_null_words() || words + blanks == 0 => only,
            (
                None | Some(ColumnType::DateTime | ColumnType::Text),
                None | Some(ColumnType::Text),
                None,
            ) => ColumnType::Text,
            _ if self.is_json => ColumnType::Mixed,
            _ => ColumnType::Text,
        }
    }

    /// The type of a column with nothing but numbers.
    fn number_type(&self) -> ColumnType {
        let decimals = self.count(TallySort::Decimal);
        match self.count(TallySort::BigInteger) {
            // A plus sign before each number, as in calling codes, is a part of it.
            _ if self.pluses.count == self.numbers() => ColumnType::Text,
            _ if self.are_versions() => ColumnType::Text,
            0 if decimals == 0 => ColumnType::Integer,
            _ if decimals == 0 => ColumnType::BigInteger,
            _ => ColumnType::Number,
        }
    }

    /// Whether numbers of CSV are versions: they look so, and a value with zeros at its end may be
    /// another one without them, as `3.10` and `3.1`.
    fn are_versions(&self) -> bool {
        self.look_like_versions() && self.is_ambiguous()
    }

    /// Whether each number of CSV is two numbers with a point between, as in `3.10`.
    fn look_like_versions(&self) -> bool {
        let decimals = self.count(TallySort::Decimal);
        !self.is_json
            && decimals > 0
            && self.count(TallySort::Integer) + self.count(TallySort::BigInteger) == 0
            && self.decimals.versions == decimals
    }

    /// Whether two values that are written differently may be the same number.
    fn is_ambiguous(&self) -> bool {
        let whole = u64::from(self.count(TallySort::Integer) > 0);
        (self.decimals.seen | whole) & self.decimals.shortened != 0
    }

    /// Ends the column.
    pub fn finish(self) -> TypedColumn {
        let column_type = self.column_type();
        let has_versions = column_type == ColumnType::Text
            && self.count(TallySort::Text) + self.count(TallySort::Code) == 0
            && self.count(TallySort::Boolean) + self.count(TallySort::Date) == 0
            && self.are_versions();
        let is_ambiguous = !self.is_json && (self.is_ambiguous() || self.look_like_versions());
        let Self { tallies, is_json, decimals, pluses, with_blanks, with_escapes, mut words } =
            self;

        words.sort_by_key(|word| (std::cmp::Reverse(word.count), word.word));
        TypedColumn {
            column_type,
            tallies,
            is_json,
            decimals,
            pluses,
            with_blanks,
            with_escapes,
            words,
            has_versions,
            is_ambiguous,
        }
    }
}

/// Whether blanks stand around a text.
#[inline]
fn has_blanks(text: &str) -> bool {
    let is_blank = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
    is_blank(text.as_bytes().first()) || is_blank(text.as_bytes().last())
}

/// Whether a number of CSV begins with a plus sign.
fn has_plus(field: Field<'_>) -> bool {
    let Field::Delimited(text) = field else { return false };
    text.bytes().find(|byte| !byte.is_ascii_whitespace()) == Some(b'+')
}
