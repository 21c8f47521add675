//! [`Problem`]: why what an upstream has sent cannot be used.

use std::{fmt, io};

use larder_protocol::quote::shortened;
use serde_json::Value;

/// The bytes of JSON that are written for a quotation, of which fewer are shown.
const QUOTED_BYTES: usize = 400;

/// Why what an upstream has sent cannot be used, with the beginning of what it sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Problem {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `expected` is a sentence about a value, to which this one does not fit.
    pub(super) fn of(expected: &str, value: &Value) -> Self {
        Self(format!("{expected}, not {}", shown(value)))
    }
}

/// The beginning of a value's JSON, for a message.
pub(super) fn shown(value: &Value) -> String {
    struct Beginning(Vec<u8>);
    impl io::Write for Beginning {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = QUOTED_BYTES - self.0.len();
            self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if bytes.len() > room { Err(io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut beginning = Beginning(Vec::new());
    // An error means that the rest is not shown.
    let _ = serde_json::to_writer(&mut beginning, value);
    shown_bytes(&beginning.0)
}

/// The beginning of a message that is no JSON.
pub(super) fn shown_bytes(bytes: &[u8]) -> String {
    let beginning = &bytes[..bytes.len().min(QUOTED_BYTES)];
    shortened(&String::from_utf8_lossy(beginning)).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_beginning_of_a_value_is_shown() {
        assert_eq!(shown(&json!({ "a": "\u{202e}" })), r#"{"a":"\u{202e}"}"#);
        let long = shown(&json!(vec!["x".repeat(1_000_000); 3]));
        assert!(long.starts_with(r#"["xxx"#) && long.chars().count() == 101, "{long}");
    }
}
