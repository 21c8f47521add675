//! Typed cells: what a field of CSV or a JSON value is in SQL.

use std::borrow::Cow;

/// A field as it is in the content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field<'a> {
    /// A field of CSV, without its quotes.
    Csv(&'a str),
    /// A JSON value.
    Json(&'a str),
    /// A text that is never a number, such as a line of a log.
    Text(&'a str),
    /// A number that Larder counts, such as that of a line.
    Number(i64),
}

/// A value of SQL.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl<'a> Field<'a> {
    /// The value. Canonical numbers become numbers; in CSV, an empty field is
    /// null, and what merely looks like a number (`00501`) is text. In JSON, true
    /// and false are 1 and 0, and lists and objects their JSON.
    pub(super) fn cell(self) -> Cell<'a> {
        match self {
            Self::Number(number) => Cell::Integer(number),
            Self::Text(text) => Cell::Text(text.into()),
            Self::Csv("") => Cell::Null,
            Self::Csv(text) => csv_number(text).unwrap_or(Cell::Text(text.into())),
            Self::Json(text) => match text.as_bytes().first() {
                None | Some(b'n') => Cell::Null,
                Some(b't') => Cell::Integer(1),
                Some(b'f') => Cell::Integer(0),
                Some(b'"') => Cell::Text(json_text(text)),
                Some(b'{' | b'[') => Cell::Text(text.into()),
                Some(_) => match (text.parse(), text.parse()) {
                    (Ok(integer), _) => Cell::Integer(integer),
                    (_, Ok(real)) => Cell::Real(real),
                    _ => Cell::Text(text.into()),
                },
            },
        }
    }

    /// Whether it is a field of CSV with digits that a number would lose: a zero
    /// in front, or more digits than an integer has. A column with such fields is
    /// text as a whole, or `zip = '10001'` would miss.
    pub(super) fn is_code(self) -> bool {
        let Self::Csv(text) = self else { return false };
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.len() > 1
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.starts_with('0') || text.parse::<i64>().is_err())
    }

    /// The text of a field in a column of codes.
    pub(super) fn code(self) -> Cell<'a> {
        match self {
            Self::Csv(text) if !text.is_empty() => Cell::Text(text.into()),
            field => field.cell(),
        }
    }
}

/// A number in the notation of JSON. An exponent needs a sign or a fraction:
/// `12e4` may be an identifier.
fn csv_number(text: &str) -> Option<Cell<'static>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let bytes = digits.as_bytes();
    let has_zero_in_front = bytes.len() > 1 && bytes[0] == b'0' && bytes[1].is_ascii_digit();

    if !bytes.first()?.is_ascii_digit() || !bytes.last()?.is_ascii_digit() || has_zero_in_front {
        return None;
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return text.parse().ok().map(Cell::Integer);
    }

    let is_number = bytes.iter().all(|b| b.is_ascii_digit() || b".eE+-".contains(b));
    let is_plain = bytes.iter().any(|b| b".+-".contains(b));
    let real = text.parse::<f64>().ok().filter(|real| is_number && is_plain && real.is_finite());
    real.map(Cell::Real)
}

fn json_text(text: &str) -> Cow<'_, str> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(text).map_or(Cow::Borrowed(text), |text| text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_numbers_are_numbers_and_codes_are_text() {
        for (text, number) in [("0", 0), ("200", 200), ("-7", -7)] {
            assert_eq!(Field::Csv(text).cell(), Cell::Integer(number));
        }

        for (text, number) in [("12.50", 12.5), ("-0.1", -0.1), ("1e-3", 0.001), ("1.5E10", 1.5e10)]
        {
            assert_eq!(Field::Csv(text).cell(), Cell::Real(number), "{text}");
        }

        for text in [
            "00501",
            "1e5",
            "12e4",
            "+1",
            " 1",
            "1.",
            ".5",
            "0x1F",
            "1-2",
            "2026-01-31",
            "NaN",
            "inf",
            "1.2.3",
            "99999999999999999999",
            "-",
        ] {
            assert_eq!(Field::Csv(text).cell(), Cell::Text(text.into()));
        }

        assert_eq!(Field::Csv("").cell(), Cell::Null);

        for (text, is_code) in [
            ("00501", true),
            ("99999999999999999999", true),
            ("0", false),
            ("10001", false),
            ("0.5", false),
            ("01a", false),
        ] {
            assert_eq!(Field::Csv(text).is_code(), is_code, "{text}");
        }
    }

    #[test]
    fn json_keeps_its_types() {
        let cell = |text| Field::Json(text).cell();
        assert_eq!(cell("\"00\\n1\""), Cell::Text("00\n1".into()));
        assert_eq!(cell("12"), Cell::Integer(12));
        assert_eq!(cell("1e2"), Cell::Real(100.0));
        assert_eq!(cell("true"), Cell::Integer(1));
        assert_eq!(cell("null"), Cell::Null);
        assert_eq!(cell("[1]"), Cell::Text("[1]".into()));
    }
}
