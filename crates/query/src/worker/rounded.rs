//! [`RoundedWithin`]: integers within lists and objects of JSON that SQLite's functions round.

use std::collections::BTreeMap;

use larder_records::{
    notes::{Note, NoteKind},
    words::{count, cut},
};

/// The longest example in bytes.
const MAX_EXAMPLE: usize = 40;
/// The fewest digits of an integer beyond 64 bits.
const MIN_DIGITS: usize = 19;

/// The cells with integers beyond 64 bits, by column.
#[derive(Debug, Default)]
pub(super) struct RoundedWithin(BTreeMap<usize, Rounded>);

#[derive(Debug)]
struct Rounded {
    cells: u64,
    /// The record of the first cell, and the first integer in it.
    record: u64,
    example: String,
}

impl RoundedWithin {
    /// Looks for such integers in a cell.
    pub(super) fn look(&mut self, record: u64, column: usize, json: &str) {
        let Some(example) = big_integer(json) else { return };
        let rounded = self.0.entry(column).or_insert_with(|| Rounded {
            cells: 0,
            record,
            example: cut(example, MAX_EXAMPLE).to_owned(),
        });
        rounded.cells += 1;
    }

    /// The note about a column of this name.
    pub(super) fn note(&self, column: usize, name: &str) -> Option<Note> {
        let Rounded { cells, record, example } = self.0.get(&column)?;
        Some(Note {
            kind: NoteKind::Number,
            table: None,
            column: Some(name.to_owned()),
            count: *cells,
            first: Some(*record),
            text: format!(
                "{} with integers beyond 64 bits, such as {example}: ->> and functions of JSON round them, -> and jq keep their digits",
                count(*cells, "value")
            ),
        })
    }
}

/// The first integer beyond 64 bits that is a value of JSON.
fn big_integer(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;

    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| {
                    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
                };
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &json[at..at + length];
                let digits = number.strip_prefix('-').unwrap_or(number);
                let is_integer =
                    digits.len() >= MIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
                if is_integer && number.parse::<i64>().is_err() {
                    return Some(number);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// The offset after the quote that ends a string.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_are_found_outside_of_strings() {
        for (json, expected) in [
            (r#"{"t":18446744073709551615}"#, Some("18446744073709551615")),
            ("[1,[-9223372036854775809]]", Some("-9223372036854775809")),
            (r#"["a\\",9223372036854775808]"#, Some("9223372036854775808")),
            ("[9223372036854775807,-9223372036854775808]", None),
            (r#"{"18446744073709551615":"18446744073709551615 \" 18446744073709551615"}"#, None),
            ("[1844674407370955161.5,1e30,12345678901234567890e1]", None),
            (r#"["open 18446744073709551615"#, None),
            ("[]", None),
        ] {
            assert_eq!(big_integer(json), expected, "{json}");
        }
    }
}
