//! [`Dialect`]: how a table is written. [`TableOptions`]: how a caller says that it is written.

use std::borrow::Cow;

use encoding_rs::Encoding;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How the rows of a table are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialect {
    /// The byte between fields.
    pub delimiter: u8,
    /// The byte around fields that contain delimiters or line breaks; `None` if no byte is.
    #[serde(default = "double_quote", skip_serializing_if = "is_double_quote")]
    pub quote: Option<u8>,
    /// The byte before a quote that belongs to a quoted field, besides a doubled quote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escape: Option<u8>,
    /// The first byte of lines that are comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<u8>,
    /// The number of lines above the table.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u32,
    /// Whether the first row has the names of the columns.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub header: bool,
}

#[allow(clippy::unnecessary_wraps, reason = "the default of a field that may be none")]
fn double_quote() -> Option<u8> {
    Some(b'"')
}

#[allow(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde passes references")]
fn is_double_quote(quote: &Option<u8>) -> bool {
    *quote == double_quote()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(skip: &u32) -> bool {
    *skip == 0
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(header: &bool) -> bool {
    *header
}

impl Dialect {
    /// A table by RFC 4180 with another byte between fields.
    pub const fn delimited(delimiter: u8) -> Self {
        Self { delimiter, quote: Some(b'"'), escape: None, comment: None, skip: 0, header: true }
    }

    /// Whether only the delimiter differs from RFC 4180.
    pub fn is_plain(self) -> bool {
        self == Self::delimited(self.delimiter)
    }

    /// The text below the lines that are skipped.
    pub fn below(self, text: &str) -> &str {
        let mut rest = text;
        for _ in 0..self.skip {
            let Some(end) = rest.find(['\n', '\r']) else { return "" };
            let after = &rest[end + 1..];
            let is_pair = rest[end..].starts_with("\r\n");
            rest = if is_pair { &after[1..] } else { after };
        }
        rest
    }

    /// A reader of all rows below the lines that are skipped. The header is a row of it.
    pub fn reader(self) -> csv::ReaderBuilder {
        let mut reader = csv::ReaderBuilder::new();
        reader
            .has_headers(false)
            .flexible(true)
            .delimiter(self.delimiter)
            .quoting(self.quote.is_some())
            .quote(self.quote.unwrap_or(b'"'))
            .escape(self.escape)
            .comment(self.comment);
        reader
    }

    /// How the table is read, if it is not by RFC 4180: `Read with delimiter ";", skip 2`.
    pub fn told(self) -> Option<String> {
        let options = serde_json::to_value(self.to_options()).unwrap_or_default();
        let options = options.as_object().into_iter().flatten();
        let named: Vec<_> = options.map(|(name, value)| format!("{name} {value}")).collect();

        // A delimiter alone is seen in the header.
        let is_odd = !self.is_plain();
        is_odd.then(|| format!("Read with {}", named.join(", ")))
    }

    /// The options that say the same; none for a table by RFC 4180.
    pub fn to_options(self) -> TableOptions {
        let mark = |byte: Option<u8>| Some(Character(byte));
        TableOptions {
            delimiter: (self.delimiter != b',').then_some(Delimiter(self.delimiter)),
            header: (!self.header).then_some(false),
            skip: (self.skip > 0).then_some(self.skip),
            comment: self.comment.and_then(|byte| mark(Some(byte))),
            quote: if is_double_quote(&self.quote) { None } else { mark(self.quote) },
            escape: self.escape.and_then(|byte| mark(Some(byte))),
            ..TableOptions::default()
        }
    }
}

/// How a caller says that a table is written. What is not given is detected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TableOptions {
    /// The character between fields, such as ";", or "tab".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<Delimiter>,
    /// Whether the first row has the names of the columns. Without it they are column_1,
    /// column_2 and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// How many lines stand above the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<u32>,
    /// The character with which comment lines begin, such as "#"; "" for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<Character>,
    /// The words that mean no value, such as NA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nulls: Option<Vec<String>>,
    /// The decimal separator of numbers: "," or ".".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
    /// The character encoding, such as "windows-1252".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Charset>,
    /// The character around fields that contain delimiters; "" for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Character>,
    /// The character before a quote within a quoted field, such as "\\"; "" for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<Character>,
}

impl TableOptions {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the options say that the content is a table, whatever it seems to be.
    pub fn make_a_table(&self) -> bool {
        self.delimiter.is_some()
            || self.header.is_some()
            || self.skip.is_some()
            || self.comment.is_some()
            || self.quote.is_some()
            || self.escape.is_some()
    }

    /// A detected dialect, changed as the options say.
    #[must_use]
    pub fn apply(&self, detected: Dialect) -> Dialect {
        Dialect {
            delimiter: self.delimiter.map_or(detected.delimiter, |given| given.0),
            quote: self.quote.map_or(detected.quote, |given| given.0),
            escape: self.escape.map_or(detected.escape, |given| given.0),
            comment: self.comment.map_or(detected.comment, |given| given.0),
            skip: self.skip.unwrap_or(detected.skip),
            header: self.header.unwrap_or(detected.header),
        }
    }

    /// The dialect of rows that were made of other content, changed as far as the options are about
    /// rows: delimiters and quotes are those of the change.
    #[must_use]
    pub fn apply_to_rows(&self, made: Dialect) -> Dialect {
        let Dialect { comment, skip, header, .. } = self.apply(made);
        Dialect { comment, skip, header, ..made }
    }

    /// Whether [`field`](Self::field) changes any field.
    pub fn change_fields(&self) -> bool {
        self.nulls.is_some() || self.decimal.is_some()
    }

    /// A field as the options say: empty if it is a word for no value, a number with a point
    /// before its decimals.
    pub fn field<'a>(&self, field: &'a str) -> Cow<'a, str> {
        if self.is_null(field) {
            return Cow::Borrowed("");
        }

        let (decimal, thousands) = match self.decimal {
            None => return Cow::Borrowed(field),
            Some(Decimal::Comma) => (',', '.'),
            Some(Decimal::Point) => ('.', ','),
        };
        match number(field.trim(), decimal, thousands) {
            Some(number) => Cow::Owned(number),
            None => Cow::Borrowed(field),
        }
    }

    /// Whether a field is one of the words for no value.
    pub fn is_null(&self, field: &str) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.iter().any(|null| null == field.trim()))
    }
}

/// A number in this notation as JSON has it; `None` if it is no number. Groups have three digits.
fn number(text: &str, decimal: char, thousands: char) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, decimals) = match digits.split_once(decimal) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (digits, None),
    };

    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let groups: Vec<_> = whole.split([thousands, '\u{a0}', '\u{202f}', ' ', '\'']).collect();
    let (first, others) = groups.split_first()?;
    let is_grouped = others.iter().all(|group| group.len() == 3 && are_digits(group));
    let is_whole = are_digits(first) && is_grouped && (others.is_empty() || first.len() <= 3);
    // A zero in front is that of a code, unless it is alone.
    let is_code = first.len() > 1 && first.starts_with('0');
    if !is_whole || is_code || decimals.is_some_and(|decimals| !are_digits(decimals)) {
        return None;
    }

    let whole = groups.concat();
    Some(decimals.map_or_else(|| format!("{sign}{whole}"), |d| format!("{sign}{whole}.{d}")))
}

/// A string of JSON that is parsed into a type.
macro_rules! text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidOption;

            fn try_from(text: String) -> Result<Self, InvalidOption> {
                Self::parse(&text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    };
}

/// The reason why an option of a table is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// An option that takes one character got something else.
    #[error("it is one ASCII character, such as \";\" or \"tab\"")]
    NoCharacter,
    /// The decimal separator is neither a comma nor a point.
    #[error("decimal is \",\" or \".\"")]
    NoDecimal,
    /// The character encoding is unknown.
    #[error(
        "encoding is a label such as \"utf-8\", \"utf-16le\", \"windows-1252\" or \"shift_jis\""
    )]
    NoEncoding,
}

/// The byte that a text of one ASCII character stands for.
fn byte(text: &str) -> Result<u8, InvalidOption> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        b"comma" => Ok(b','),
        b"semicolon" => Ok(b';'),
        b"pipe" => Ok(b'|'),
        _ => Err(InvalidOption::NoCharacter),
    }
}

fn name_of_byte(byte: u8) -> String {
    if byte == b'\t' { "tab".to_owned() } else { char::from(byte).to_string() }
}

/// The byte between fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Delimiter(u8);

impl Delimiter {
    fn parse(text: &str) -> Result<Self, InvalidOption> {
        byte(text).map(Self)
    }

    /// The byte.
    pub fn byte(self) -> u8 {
        self.0
    }
}

impl From<Delimiter> for String {
    fn from(delimiter: Delimiter) -> Self {
        name_of_byte(delimiter.0)
    }
}

text!(Delimiter);

/// A byte with a meaning in a table, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Character(Option<u8>);

impl Character {
    fn parse(text: &str) -> Result<Self, InvalidOption> {
        if text.is_empty() { Ok(Self(None)) } else { byte(text).map(|byte| Self(Some(byte))) }
    }

    /// The byte.
    pub fn byte(self) -> Option<u8> {
        self.0
    }
}

impl From<Character> for String {
    fn from(mark: Character) -> Self {
        mark.0.map_or_else(Self::new, name_of_byte)
    }
}

text!(Character);

/// The decimal separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Decimal {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

impl Decimal {
    fn parse(text: &str) -> Result<Self, InvalidOption> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err(InvalidOption::NoDecimal),
        }
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        match decimal {
            Decimal::Point => ".".to_owned(),
            Decimal::Comma => ",".to_owned(),
        }
    }
}

text!(Decimal);

/// A character encoding, by the labels of the WHATWG Encoding Standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Charset(&'static Encoding);

impl Charset {
    /// The encoding that a label stands for, such as `latin1`.
    ///
    /// # Errors
    /// The label is unknown.
    pub fn parse(label: &str) -> Result<Self, InvalidOption> {
        Encoding::for_label_no_replacement(label.as_bytes())
            .map(Self)
            .ok_or(InvalidOption::NoEncoding)
    }

    /// The encoding.
    pub fn encoding(self) -> &'static Encoding {
        self.0
    }
}

impl From<&'static Encoding> for Charset {
    fn from(encoding: &'static Encoding) -> Self {
        Self(encoding)
    }
}

impl From<Charset> for String {
    fn from(charset: Charset) -> Self {
        charset.0.name().to_ascii_lowercase()
    }
}

text!(Charset);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_parsed_once_and_written_as_they_were_given() {
        let given = json!({
            "delimiter": "tab", "header": false, "skip": 2, "comment": "#", "nulls": ["NA", "-"],
            "decimal": ",", "encoding": "windows-1252", "quote": "", "escape": "\\",
        });
        let options: TableOptions = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&options).unwrap(), given);

        let dialect = options.apply(Dialect::delimited(b','));
        let expected = Dialect {
            delimiter: b'\t',
            quote: None,
            escape: Some(b'\\'),
            comment: Some(b'#'),
            skip: 2,
            header: false,
        };
        assert_eq!(dialect, expected);
        assert!(options.is_null(" NA ") && options.is_null("-") && !options.is_null("N"));
    }

    #[test]
    fn fields_are_read_as_the_options_say() {
        let options = |json| serde_json::from_value::<TableOptions>(json).unwrap();
        let comma = options(json!({ "decimal": ",", "nulls": ["-"] }));
        for (field, expected) in [
            ("1,5", "1.5"),
            ("-1.234,50", "-1234.50"),
            ("1.234.567", "1234567"),
            ("1 234,5", "1234.5"),
            ("12", "12"),
            ("-", ""),
            ("1,5,6", "1,5,6"),
            ("1.23,4", "1.23,4"),
            ("007", "007"),
            ("a,b", "a,b"),
            ("", ""),
        ] {
            assert_eq!(comma.field(field), expected, "{field}");
        }

        let point = options(json!({ "decimal": "." }));
        assert_eq!(point.field("1,234.5"), "1234.5");
        assert_eq!(point.field("1,5"), "1,5");
        assert!(point.change_fields() && !options(json!({ "skip": 1 })).change_fields());
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        for (given, problem) in [
            (json!({ "delimiter": "" }), "one ASCII character"),
            (json!({ "delimiter": ";;" }), "one ASCII character"),
            (json!({ "comment": "\n" }), "one ASCII character"),
            (json!({ "quote": "“" }), "one ASCII character"),
            (json!({ "decimal": "'" }), "decimal is"),
            (json!({ "encoding": "klingon" }), "encoding is a label"),
        ] {
            let error = serde_json::from_value::<TableOptions>(given.clone()).unwrap_err();
            assert!(error.to_string().contains(problem), "{given}: {error}");
        }
    }

    #[test]
    fn dialects_of_earlier_indexes_are_plain() {
        let earlier: Dialect = serde_json::from_value(json!({ "delimiter": 59 })).unwrap();
        assert_eq!(earlier, Dialect::delimited(b';'));
        assert_eq!(serde_json::to_value(earlier).unwrap(), json!({ "delimiter": 59 }));
        assert_eq!(
            serde_json::to_value(earlier.to_options()).unwrap(),
            json!({ "delimiter": ";" })
        );
    }
}
