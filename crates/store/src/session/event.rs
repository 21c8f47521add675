//! [`Event`] and [`EventId`]: the messages of a stream and their positions.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The event's id, for `Last-Event-ID`.
    pub id: EventId,
    /// A JSON-RPC message on one line.
    pub data: Bytes,
}

/// A stream and a position in it. Valid only in the session of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    /// The stream's globally unique name.
    pub stream: Arc<str>,
    /// The position of the message, from 1; 0 precedes the first message.
    pub position: u64,
}

impl EventId {
    /// A different id for the same position. Event ids are unique, so a priming event in the middle
    /// of a stream needs an id of its own. `token` consists of ASCII letters and digits.
    pub fn alias(&self, token: &str) -> String {
        format!("{self}.{token}")
    }

    /// Parses the output of [`fmt::Display`] or of [`Self::alias`].
    pub fn parse(text: &str) -> Option<Self> {
        let text = match text.split_once('.') {
            Some((id, token)) => {
                let is_token = |b: u8| b.is_ascii_alphanumeric();
                Some(id).filter(|_| !token.is_empty() && token.bytes().all(is_token))?
            }
            None => text,
        };

        let (stream, position) = text.rsplit_once('-')?;
        let digits = !position.is_empty() && position.bytes().all(|b| b.is_ascii_digit());
        let position = position.parse().ok().filter(|_| digits)?;

        Some(Self { stream: stream.into(), position })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::EventId;

    #[test]
    fn an_id_is_parsed_as_it_was_formatted_and_any_other_text_is_refused() {
        let id = EventId { stream: "ab12".into(), position: 7 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id.clone()));
        assert_eq!(EventId::parse(&id.alias("c3")), Some(id));

        for garbage in [
            "",
            "-",
            "ab",
            "ab-",
            "ab-+1",
            "ab--1x",
            "ab-99999999999999999999999",
            "ab-7.",
            "ab-7.-",
        ] {
            assert_eq!(EventId::parse(garbage), None, "{garbage}");
        }
    }
}
