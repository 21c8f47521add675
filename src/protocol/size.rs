//! How large JSON is: written, without writing it; and read, without reading it.

use std::io;

use serde::Serialize;

use super::members::end_of_string;

/// The length of a value's JSON in bytes. What cannot be written counts as far
/// as it could be.
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

/// Whether JSON has no more values than that, members and elements at every
/// depth counted. A value takes far more in memory than the three bytes that
/// may bring it. What is no JSON counts as something; nothing is copied, and
/// text that is too short for so many is not even looked at.
pub fn has_values_within(json: &[u8], most: usize) -> bool {
    // Each takes a byte and what parts it from the next.
    if json.len() / 2 < most {
        return true;
    }
    let (mut values, mut rest) = (1_usize, json);
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b'[' | b'{')) {
        let after = &rest[at + 1..];
        rest = match rest[at] {
            b'"' => &rest[end_of_string(rest, at)..],
            b',' => {
                values += 1;
                after
            }
            _ => {
                // The first value in it, unless it is empty.
                let first = after.iter().find(|byte| !byte.is_ascii_whitespace());
                values += usize::from(!matches!(first, Some(b']' | b'}')));
                after
            }
        };
        if values > most {
            break;
        }
    }
    values <= most
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
            assert!(has_values_within(padded.as_bytes(), values), "{json}");
            assert!(!has_values_within(padded.as_bytes(), values - 1), "{json}");
        }
        assert!(has_values_within(b"\"unfinished \\", 1));
    }
}
