//! [`JsonDigest`]: recognizes the same JSON value in another formatting.

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

use super::unescape::Unescape;

/// The maximum length of a number or literal in bytes. Longer ones have no digest.
const MAX_SCALAR: usize = 64;
/// The number of bytes that are hashed at a time.
const BATCH: usize = 8 << 10;
/// Marks the end of a string or scalar in the hashed bytes. UTF-8 does not use this byte.
const END: u8 = 0xFF;

/// Computes the digest of JSON that arrives in pieces. It does not depend on white space, escapes
/// or the notation of numbers, but on the order of members.
#[derive(Debug, Default)]
pub struct JsonDigest {
    hash: Sha256,
    /// The bytes to hash next.
    batch: Vec<u8>,
    /// The number or literal that has begun.
    scalar: Vec<u8>,
    string: Option<Unescape>,
    is_invalid: bool,
}

impl JsonDigest {
    /// The digest of a value's JSON.
    pub fn of(value: &Value) -> Option<[u8; 32]> {
        struct Feed(JsonDigest);
        impl std::io::Write for Feed {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.feed(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }

        let mut feed = Feed(Self::default());
        serde_json::to_writer(&mut feed, value).ok()?;
        feed.0.finish()
    }

    /// Adds the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_invalid {
            if let Some(string) = &mut self.string {
                let Ok((used, has_ended)) = string.feed(bytes, &mut self.batch) else {
                    self.is_invalid = true;
                    return;
                };
                bytes = &bytes[used..];

                if has_ended {
                    self.string = None;
                    self.batch.push(END);
                }
            } else {
                let byte = bytes[0];
                bytes = &bytes[1..];

                match byte {
                    b'"' => {
                        self.end_scalar();
                        self.batch.push(b'"');
                        self.string = Some(Unescape::default());
                    }
                    b'{' | b'}' | b'[' | b']' | b',' | b':' => {
                        self.end_scalar();
                        self.batch.push(byte);
                    }
                    b' ' | b'\n' | b'\r' | b'\t' => self.end_scalar(),
                    _ if self.scalar.len() < MAX_SCALAR => self.scalar.push(byte),
                    _ => self.is_invalid = true,
                }
            }

            if self.batch.len() >= BATCH {
                self.hash.update(&self.batch);
                self.batch.clear();
            }
        }
    }

    /// Adds the number or literal that has ended. Numbers are hashed by value: `1e3` equals `1000.0`.
    fn end_scalar(&mut self) {
        if self.scalar.is_empty() {
            return;
        }
        match serde_json::from_slice::<Number>(&self.scalar) {
            Ok(number) => self.batch.extend_from_slice(number.to_string().as_bytes()),
            Err(_) => self.batch.extend_from_slice(&self.scalar),
        }
        self.batch.push(END);
        self.scalar.clear();
    }

    /// The digest; `None` for malformed strings and scalars, which are not JSON.
    pub fn finish(mut self) -> Option<[u8; 32]> {
        self.end_scalar();
        self.hash.update(&self.batch);
        (!self.is_invalid && self.string.is_none()).then(|| self.hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_depends_on_the_value_and_not_on_the_layout() {
        let value = json!({ "b": [1, 2.5, 1e3, true], "a": "é \"x\"\n", "c": { "d": [] } });
        let digest = |text: &str| {
            let mut digest = JsonDigest::default();
            text.as_bytes().chunks(3).for_each(|piece| digest.feed(piece));
            digest.finish()
        };

        let spaced =
            "{ \"b\" : [1,2.50,1000.0,true], \"a\":\"\\u00e9 \\\"x\\\"\\n\",\"c\":{\"d\":[ ]}}\n";
        let pretty = serde_json::to_string_pretty(&value).expect("a value serializes");

        for text in [value.to_string(), pretty, spaced.to_owned()] {
            assert!(digest(&text).is_some() && digest(&text) == JsonDigest::of(&value), "{text}");
        }

        for text in [
            "{\"b\":[1,2.5,1e3,true],\"a\":\"é \\\"x\\\"\\n\",\"c\":{\"d\":[]}",
            "{\"b\":[12.5,1e3,true],\"a\":\"é \\\"x\\\"\\n\",\"c\":{\"d\":[]}}",
            "{\"b\":[1,2.5,1e3,\"true\"],\"a\":\"é \\\"x\\\"\\n\",\"c\":{\"d\":[]}}",
            "{\"b",
        ] {
            assert_ne!(digest(text), JsonDigest::of(&value), "{text}");
        }
    }
}
