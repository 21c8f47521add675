//! Messages in a stream of server-sent events, of a limited length.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncBufRead;

use super::line::{Line, read_line};

/// An event, as far as messages need it.
pub(super) enum Event {
    Message(Bytes),
    /// A message was longer than allowed, and discarded.
    TooLong {
        /// The id of the request that it answers, if it says so.
        answers: Option<i64>,
    },
    End,
}

/// Reads the data of the next event that has any.
pub(super) async fn read_event(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<Event> {
    // The field's name comes in addition.
    const FIELD: usize = "data: ".len() + 1;
    let mut data: Option<Bytes> = None;
    loop {
        match read_line(input, max_bytes + FIELD).await? {
            Line::End => return Ok(Event::End),
            Line::TooLong { answers } => return Ok(Event::TooLong { answers }),
            Line::Message(line) => {
                let line = line.slice(..line.len() - usize::from(line.ends_with(b"\r")));
                if line.is_empty() {
                    match data.take() {
                        // A priming event has no data.
                        Some(message) if !message.is_empty() => return Ok(Event::Message(message)),
                        _ => continue,
                    }
                }
                let Some(value) = line.strip_prefix(b"data:") else { continue };
                let value = line.slice_ref(value.strip_prefix(b" ").unwrap_or(value));
                data = Some(match data {
                    None => value,
                    Some(before) if before.len() + value.len() > max_bytes => {
                        return Ok(Event::TooLong { answers: None });
                    }
                    Some(before) => {
                        let mut joined = BytesMut::from(before);
                        joined.extend_from_slice(b"\n");
                        joined.extend_from_slice(&value);
                        joined.freeze()
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn events_are_read_one_by_one() {
        let text = "id: 1\nretry: 5\ndata:\n\n: comment\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\n\ndata: cut";
        let mut input = tokio::io::BufReader::with_capacity(5, text.as_bytes());
        let mut messages = Vec::new();
        while let Event::Message(message) = read_event(&mut input, 100).await.unwrap() {
            messages.push(String::from_utf8(message.to_vec()).unwrap());
        }
        assert_eq!(messages, ["{\"a\":\n1}", "x"]);
        let long = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{}\"}}\n\n",
            "x".repeat(500)
        );
        let mut input = long.as_bytes();
        let event = read_event(&mut input, 100).await.unwrap();
        assert!(matches!(event, Event::TooLong { .. }));
    }
}
