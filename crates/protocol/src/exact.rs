//! Numbers that a value of JSON does not keep as they were written: integers beyond 64 bits,
//! `1.10`, `1e3`. Where JSON passes through, its text is passed on instead.

use serde_json::Number;

/// Whether all numbers of valid JSON are kept as they were written.
#[must_use]
pub fn keeps_numbers(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_string(after),
            b'-' | b'0'..=b'9' => {
                let end = rest.iter().position(|byte| !is_of_number(*byte)).unwrap_or(rest.len());
                let (number, after) = rest.split_at(end);
                if !is_kept(number) {
                    return false;
                }
                after
            }
            _ => after,
        };
    }
    true
}

/// Valid JSON without line breaks, which end a message over standard input and output.
#[must_use]
pub fn in_one_line(json: &[u8]) -> Vec<u8> {
    // Within a string, a line break is escaped.
    json.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect()
}

/// The kind of the string that has begun.
fn after_string(mut rest: &[u8]) -> &[u8] {
    loop {
        let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return &[];
        };
        let skipped = if rest[at] == b'"' { 1 } else { 2 };
        let after = rest.get(at + skipped..).unwrap_or_default();
        if skipped == 1 {
            return after;
        }
        rest = after;
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_kept(number: &[u8]) -> bool {
    // Most numbers are short integers.
    let is_short = number.len() <= 18 && number.iter().all(u8::is_ascii_digit);
    if is_short {
        return true;
    }
    let Ok(text) = std::str::from_utf8(number) else { return false };
    serde_json::from_str::<Number>(text).is_ok_and(|parsed| parsed.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_change_are_found_outside_of_strings() {
        for kept in [
            "{}",
            "[1, -2, 0, 1.5, -0.25, 18446744073709551615, -9223372036854775808, 1.0]",
            r#"{"a": "1.10", "1.10": "\"1.10", "b": "\\"}"#,
            r#""1e3"#,
        ] {
            assert!(keeps_numbers(kept.as_bytes()), "{kept}");
        }
        for changed in [
            "1.10",
            "[12345678901234567890123]",
            r#"{"a": {"b": [0, 1e3]}}"#,
            r#"{"a\"": 5.00}"#,
            "-0",
            "-18446744073709551615",
            "0.1000000000000000055511151231257827",
            r#"["\\", 1.10]"#,
        ] {
            assert!(!keeps_numbers(changed.as_bytes()), "{changed}");
        }
    }

    #[test]
    fn line_breaks_between_values_are_left_out() {
        let json = "{\n \"a\": \"x\\ny\",\r\n \"b\": 1.10 }";
        assert_eq!(in_one_line(json.as_bytes()), b"{ \"a\": \"x\\ny\", \"b\": 1.10 }");
    }
}
