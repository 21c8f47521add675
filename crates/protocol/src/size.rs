//! The size of JSON: in bytes without writing it, in values without parsing it.

use std::io;

use serde::Serialize;
use serde_json::Value;

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

/// Whether a value's JSON is longer than `max` bytes. Stops writing there.
pub fn json_exceeds(value: &impl Serialize, max: usize) -> bool {
    struct Room(usize);
    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    serde_json::to_writer(&mut Room(max), value).is_err()
}

/// The approximate size of a value in bytes, at most `max`. Stops reading the value there.
pub fn size_up_to(value: &Value, max: usize) -> usize {
    fn take(value: &Value, left: &mut usize) {
        let own = match value {
            Value::String(text) => text.len(),
            _ => 0,
        };
        *left = left.saturating_sub(own + 1);

        match value {
            Value::Array(items) => {
                for item in items {
                    if *left == 0 {
                        return;
                    }
                    take(item, left);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    *left = left.saturating_sub(name.len());
                    if *left == 0 {
                        return;
                    }
                    take(value, left);
                }
            }
            _ => {}
        }
    }

    let mut left = max;
    take(value, &mut left);
    max - left
}

/// Whether JSON has at most `max` values, as `count_values` counts them. Does not
/// scan texts that are too short for `max` values.
pub fn has_at_most_values(json: &[u8], max: usize) -> bool {
    // Each value takes at least one byte and a separator.
    json.len() / 2 < max || count_values(json, max).is_some()
}

/// The number of values in JSON, counting members and elements at every depth; `None`
/// if there are more than `max`. A parsed value takes far more memory than the few
/// bytes of its JSON. The result for malformed JSON is arbitrary. Copies nothing.
pub fn count_values(json: &[u8], max: usize) -> Option<usize> {
    let mut values = 1_usize;
    let mut rest = json;

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

    (values <= max).then_some(values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_exceeds_every_length_below_its_own() {
        let value = json!({ "a": [1, "é\n", null], "b": {} });
        let size = json_size(&value);

        assert!(!json_exceeds(&value, size) && !json_exceeds(&value, usize::MAX));
        assert!(json_exceeds(&value, size - 1) && json_exceeds(&value, 0));
    }

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

    #[test]
    fn a_large_value_is_recognized_by_a_part_of_it() {
        let max = 100;
        for large in [
            json!("x".repeat(100)),
            json!([0, "x".repeat(100)]),
            json!({ "x".repeat(100): 1 }),
            json!({ "a": { "b": vec![0; 100] } }),
            json!(vec![json!([]); 100]),
        ] {
            assert_eq!(size_up_to(&large, max), max, "{large}");
        }
        assert_eq!(size_up_to(&json!({ "ab": ["cde", 1, null] }), max), 10);
    }
}
