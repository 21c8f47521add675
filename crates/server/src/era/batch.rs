//! Batches of the protocol version 2025-03-26, the only one that has them: lists of messages.

use std::fmt;

use bytes::Bytes;
use larder_protocol::{Fault, ProtocolVersion, consecutive, quote::parse_error};
use larder_store::session::Session;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The most messages of a batch.
const MAX_MESSAGES: usize = 64;

/// Whether a body is a list.
pub fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'[')
}

/// Whether a client may send batches in its session.
pub fn has_batches(session: &Session) -> bool {
    session.version == ProtocolVersion::V2025_03_26
}

/// The messages of a batch.
///
/// # Errors
/// The body is no JSON, or has no messages or too many.
pub fn messages(body: &Bytes) -> Result<Vec<Bytes>, Fault> {
    let Messages(messages) = serde_json::from_slice(body).map_err(|error| {
        Fault::Parse(format!("The body is not valid JSON: {}.", parse_error(&error.to_string())))
    })?;

    match messages.len() {
        0 => Err(Fault::InvalidRequest("A batch must have a message.".into())),
        count if count > MAX_MESSAGES => {
            Err(Fault::InvalidRequest(format!("A batch has at most {MAX_MESSAGES} messages.")))
        }
        _ => Ok(messages.iter().map(|raw| body.slice_ref(raw.get().as_bytes())).collect()),
    }
}

/// The messages of a line on which several follow each other, as when the line break between them
/// is lost. `None` for any other line.
///
/// # Errors
/// There are too many messages.
pub fn consecutive_messages(line: &Bytes) -> Option<Result<Vec<Bytes>, Fault>> {
    // Few messages have these bytes, so few are looked through.
    let may_be = [&b"}{"[..], b"} {", b"}\t{", b"}\r{"];
    if !may_be.iter().any(|bytes| memchr::memmem::find(line, bytes).is_some()) {
        return None;
    }

    let messages = consecutive(std::str::from_utf8(line).ok()?, MAX_MESSAGES)?;
    if messages.len() > MAX_MESSAGES {
        let message = format!("A line has at most {MAX_MESSAGES} messages.");
        return Some(Err(Fault::InvalidRequest(message)));
    }
    Some(Ok(messages.iter().map(|message| line.slice_ref(message.as_bytes())).collect()))
}

/// The messages of a batch, up to the first one that is too many.
struct Messages<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Messages<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstMessages;

        impl<'de> Visitor<'de> for FirstMessages {
            type Value = Messages<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = list.next_element()? {
                    if messages.len() <= MAX_MESSAGES {
                        messages.push(message);
                    }
                }
                Ok(Messages(messages))
            }
        }

        deserializer.deserialize_seq(FirstMessages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_list_of_a_few_messages() {
        let of = |text: &str| messages(&Bytes::copy_from_slice(text.as_bytes())).ok();
        let two = vec![Bytes::from(r#"{"a":1}"#), Bytes::from("5")];
        assert_eq!(of(r#" [{"a":1}, 5 ]"#), Some(two));

        for bad in ["[]", "[", "[1,]", "[1] 2"] {
            assert!(of(bad).is_none(), "{bad}");
        }
        let many = format!("[{}1]", "1,".repeat(MAX_MESSAGES));
        assert!(of(&many).is_none());

        let follow = |text: &str| {
            consecutive_messages(&Bytes::copy_from_slice(text.as_bytes())).map(Result::ok)
        };
        let two = vec![Bytes::from(r#"{"a":1}"#), Bytes::from(r#"{"b":"}{"}"#)];
        assert_eq!(follow(r#"{"a":1}{"b":"}{"}"#), Some(Some(two.clone())));
        assert_eq!(follow("{\"a\":1}\r{\"b\":\"}{\"}\r"), Some(Some(two)));
        assert_eq!(follow(r#"{"b":"}{"}"#), None);
        assert_eq!(follow(r#"{"a":1}{"b""#), None);
        assert_eq!(follow(&"{}".repeat(MAX_MESSAGES + 1)), Some(None));

        assert!(is_batch(b"\n [1]") && !is_batch(b"{}") && !is_batch(b""));
    }
}
