//! [`Class`]: the type that a single value may have. The column's type decides which of it holds.

use std::borrow::Cow;

use super::{
    Field,
    notation::{Decimal, Notation, is_plain_integer, notation},
    null_words::{is_null_in_json, may_begin_word, null_word},
};

/// The type that a single value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// An empty field of CSV, or JSON's null.
    Null,
    /// Nothing but blanks, or an empty string of JSON: null unless the column is text.
    Blank,
    /// A word for no value: null unless the column is text.
    NullWord(u8),
    Boolean,
    Integer,
    BigInteger,
    Decimal(Decimal),
    /// A date, with or without a time.
    Date,
    /// A text that looks like a number and would lose digits: `00501`.
    Code,
    /// A string of JSON that looks like a number.
    NumericText,
    Text,
    List,
    Object,
}

impl Class {
    /// The class of a value.
    #[inline]
    pub(super) fn of(field: Field<'_>) -> Self {
        match field {
            Field::Delimited(text) => Self::of_delimited(text),
            Field::Json(json) => Self::of_json(json),
            Field::Text(_) => Self::Text,
            Field::Number(_) => Self::Integer,
        }
    }

    #[inline]
    fn of_delimited(text: &str) -> Self {
        if is_plain_integer(text) {
            return Self::Integer;
        }
        match text.as_bytes().first() {
            None => Self::Null,
            Some(first) if first.is_ascii_alphabetic() && !may_begin_word(*first) => Self::Text,
            Some(_) => Self::of_text(text.trim()),
        }
    }

    /// The class of a text without blanks around it.
    fn of_text(text: &str) -> Self {
        if text.is_empty() {
            return Self::Blank;
        }

        match notation(text) {
            Some(Notation::Integer) => return Self::Integer,
            Some(Notation::BigInteger) => return Self::BigInteger,
            Some(Notation::Decimal(decimal)) => return Self::Decimal(decimal),
            Some(Notation::Code) => return Self::Code,
            None => {}
        }

        if boolean(text).is_some() {
            Self::Boolean
        } else if is_date(text) {
            Self::Date
        } else {
            null_word(text).map_or(Self::Text, Self::NullWord)
        }
    }

    fn of_json(json: &str) -> Self {
        match json.as_bytes().first() {
            None | Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'"') if is_word_in_quotes(json) => Self::Text,
            Some(b'"') => match Self::of_text(json_text(json).trim()) {
                // JSON says that it is a text.
                Self::Integer | Self::BigInteger | Self::Decimal(_) | Self::Code => {
                    Self::NumericText
                }
                Self::Boolean => Self::Text,
                Self::NullWord(word) if !is_null_in_json(word) => Self::Text,
                class => class,
            },
            Some(b'[') => Self::List,
            Some(b'{') => Self::Object,
            Some(_) => match notation(json) {
                Some(Notation::Integer) => Self::Integer,
                Some(Notation::BigInteger) => Self::BigInteger,
                Some(Notation::Decimal(decimal)) => Self::Decimal(decimal),
                // JSON allows no other numbers, but for those that are too large.
                Some(Notation::Code) | None => Self::Text,
            },
        }
    }
}

/// The value of `true` and `false`, in any case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// Whether a text is a date as ISO 8601 writes it, such as `2026-01-31`, or a date and a time:
/// `2026-01-31T09:30:00.5+01:00`.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !(10..=40).contains(&bytes.len()) || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }

    let two = |at: usize| {
        let digits = [bytes[at], bytes[at + 1]];
        let [tens, ones] = digits.map(|digit| digit.wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| tens * 10 + ones)
    };
    let is_day = two(0).is_some()
        && two(2).is_some()
        && two(5).is_some_and(|month| (1..=12).contains(&month))
        && two(8).is_some_and(|day| (1..=31).contains(&day));

    is_day
        && (bytes.len() == 10 || (matches!(bytes[10], b'T' | b't' | b' ') && is_time(&bytes[11..])))
}

/// Whether bytes are `09:30`, with or without seconds, a fraction of them, and a zone.
fn is_time(bytes: &[u8]) -> bool {
    let is_pair =
        |at: usize| bytes.get(at..at + 2).is_some_and(|d| d.iter().all(u8::is_ascii_digit));
    if !is_pair(0) || bytes.get(2) != Some(&b':') || !is_pair(3) {
        return false;
    }

    let mut rest = &bytes[5..];
    if rest.first() == Some(&b':') {
        if !is_pair(6) {
            return false;
        }
        rest = &bytes[8..];
        if let Some(b'.' | b',') = rest.first() {
            let digits = rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            rest = &rest[1 + digits..];
        }
    }
    is_zone(rest.trim_ascii_start())
}

/// Whether bytes are nothing, `Z`, `UTC`, or an offset such as `+01:00`.
fn is_zone(bytes: &[u8]) -> bool {
    match bytes {
        [] | b"Z" | b"z" | b"UTC" | b"GMT" => true,
        [b'+' | b'-', offset @ ..] => {
            let digits = match offset {
                [hours @ .., b':', tens, ones] => [hours, &[*tens, *ones]].concat(),
                digits => digits.to_vec(),
            };
            matches!(digits.len(), 2 | 4) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// Whether a JSON string begins with a letter that begins nothing but a text.
#[inline]
fn is_word_in_quotes(json: &str) -> bool {
    let first = json.as_bytes().get(1);
    first.is_some_and(|first| first.is_ascii_alphabetic() && !may_begin_word(*first))
}

/// The text of a JSON string.
pub(super) fn json_text(json: &str) -> Cow<'_, str> {
    if let Some(text) = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'))
        && memchr::memchr(b'\\', text.as_bytes()).is_none()
    {
        return text.into();
    }

    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(json).map_or(Cow::Borrowed(json), |text| text.0)
}
