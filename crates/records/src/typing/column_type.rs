//! [`ColumnType`]: the type of a column; [`TypedValue`]: a value by it.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use super::{
    Field,
    class::{Class, boolean, json_text},
};

/// The type of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// No value at all.
    #[default]
    Null,
    /// True or false.
    Boolean,
    /// Integers of 64 bits.
    Integer,
    /// Integers, of which some are beyond 64 bits. They stay as they are written.
    BigInteger,
    /// Numbers.
    Number,
    /// Texts as they are written, whatever single values look like.
    Text,
    /// Dates, or dates and times, as ISO 8601 writes them.
    DateTime,
    /// Lists of JSON.
    List,
    /// Objects of JSON.
    Object,
    /// Values of JSON of several types, each as JSON has it.
    Mixed,
}

impl ColumnType {
    /// The name, as messages write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::BigInteger => "big integer",
            Self::Number => "number",
            Self::Text => "text",
            Self::DateTime => "date",
            Self::List => "list",
            Self::Object => "object",
            Self::Mixed => "mixed",
        }
    }

    /// Whether all values are numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::BigInteger | Self::Number)
    }

    /// Whether words for no value are null in the column.
    pub(super) fn has_null_words(self) -> bool {
        self.is_numeric() || matches!(self, Self::Boolean | Self::DateTime)
    }

    /// A value of a column of this type.
    #[inline]
    pub fn value(self, field: Field<'_>) -> TypedValue<'_> {
        match field {
            Field::Number(number) => TypedValue::Integer(number),
            Field::Delimited("") => TypedValue::Null,
            // A column of nothing but blanks has no value.
            Field::Delimited(text) if self.has_null_words() || self == Self::Null => {
                self.read(text.trim(), text)
            }
            Field::Delimited(text) | Field::Text(text) => TypedValue::Text(text.into()),
            Field::Json(json) => self.json(json),
        }
    }

    /// The value of a field of CSV, trimmed and as it is written.
    #[inline]
    fn read<'a>(self, trimmed: &'a str, written: &'a str) -> TypedValue<'a> {
        let value = match self {
            Self::Integer => trimmed.parse().ok().map(TypedValue::Integer),
            Self::Number => number(trimmed),
            Self::BigInteger => big_integer(trimmed),
            Self::Boolean => boolean(trimmed).map(TypedValue::Boolean),
            _ => None,
        };

        value.unwrap_or_else(|| match Class::of(Field::Delimited(trimmed)) {
            Class::Null | Class::Blank | Class::NullWord(_) => TypedValue::Null,
            Class::Date => TypedValue::Text(trimmed.into()),
            _ => TypedValue::Text(written.into()),
        })
    }

    fn json(self, json: &str) -> TypedValue<'_> {
        match json.as_bytes().first() {
            None | Some(b'n') => TypedValue::Null,
            Some(b't') => TypedValue::Boolean(true),
            Some(b'f') => TypedValue::Boolean(false),
            Some(b'{' | b'[') => TypedValue::Json(json),
            Some(b'"') => {
                let is_null = self.has_null_words()
                    && matches!(Class::of(Field::Json(json)), Class::Blank | Class::NullWord(_));
                if is_null { TypedValue::Null } else { TypedValue::Text(json_text(json)) }
            }
            Some(_) => {
                let value = match self {
                    Self::BigInteger => big_integer(json),
                    Self::Number => number(json),
                    _ => json_number(json),
                };
                value.unwrap_or(TypedValue::Text(json.into()))
            }
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value by the type of its column.
#[derive(Debug, Clone, PartialEq)]
pub enum TypedValue<'a> {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// An integer of 64 bits.
    Integer(i64),
    /// The digits of an integer in a column of which some are beyond 64 bits.
    BigInteger(Cow<'a, str>),
    /// A number, which is finite.
    Number(f64),
    /// A text, as it is written.
    Text(Cow<'a, str>),
    /// A list or an object of JSON, as it is written.
    Json(&'a str),
}

/// A number in any notation.
fn number(text: &str) -> Option<TypedValue<'static>> {
    // Rust also parses `inf` and `nan`.
    let last = text.bytes().last()?;
    if !last.is_ascii_digit() && last != b'.' {
        return None;
    }
    if let Ok(integer) = text.parse() {
        return Some(TypedValue::Integer(integer));
    }
    text.parse().ok().filter(|number: &f64| number.is_finite()).map(TypedValue::Number)
}

/// A number of JSON in a column of several types: integers beyond 64 bits stay as they are.
fn json_number(json: &str) -> Option<TypedValue<'static>> {
    let is_integer = json.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let value = number(json)?;
    (!is_integer || matches!(value, TypedValue::Integer(_))).then_some(value)
}

/// The digits of an integer of any size, without a plus sign.
fn big_integer(text: &str) -> Option<TypedValue<'_>> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let digits = unsigned.strip_prefix('-').unwrap_or(unsigned);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }

    let canonical = if digits == "0" { digits } else { unsigned };
    Some(TypedValue::BigInteger(canonical.into()))
}
