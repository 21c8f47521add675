//! The size of JSON: in bytes without writing it, in values without parsing it.

use std::io;

use serde::Serialize;

use super::members::end_of_string;

/// The length of a value's JSON in bytes. If the value cannot be serialized,
/// counts the bytes written before the error.
pub fn json_size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Whether JSON has at most `max` values, counting members and elements at
/// every depth. A parsed value takes far more memory than the few bytes of its
/// JSON. The result for malformed JSON is arbitrary. Copies nothing, and does
/// not scan texts that are too short for `max` values.
pub fn has_at_most_values(json: &[u8], max: usize) -> bool {
    // Each value takes at least one byte and a separator.
    if json.len() / 2 < max {
        return true;
    }
    let (mut values, mut rest) = (1_usize, json);
    while let Some(token) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b'[' | b'{')) {
        let after = &rest[token + 1..];
        rest = match rest[token] {
            b'"' => &rest[end_of_string(rest, token)..],
            b',' => {
                values += 1;
                after
            }
            _ => {
                // The container's first value, unless it is empty.
                let first = after.iter().find(|byte| !byte.is_ascii_whitespace());
                values += usize::from(!matches!(first, Some(b']' | b'}')));
                after
            }
        };
        if values > max {
            break;
        }
    }
    values <= max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_at_every_depth_and_not_within_strings() {
        for (json, values) in [
            (r#"{"a":[1,2,{}],"b":"[,,{"}"#, 6),
            (r#"[[],{ },[ ],"\\",{"x":"\"","y":null}]"#, 8),
            (r#""a string, with [all] {of} it""#, 1),
            ("[[[[1]]]]", 5),
        ] {
            let padded = format!("{json}{}", " ".repeat(100));
            assert!(has_at_most_values(padded.as_bytes(), values), "{json}");
            assert!(!has_at_most_values(padded.as_bytes(), values - 1), "{json}");
        }
        assert!(has_at_most_values(b"\"unfinished \\", 1));
    }
}
