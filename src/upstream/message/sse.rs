//! Messages in a stream of server-sent events, of a limited length.

use std::io;

use bytes::BytesMut;
use tokio::io::AsyncBufRead;

use super::{
    assembly::{Arrived, Assembly, Calls},
    line::{Incoming, read_line},
    refusal::Refusal,
};

/// Reads the data of the next event that has any. `request` is the one that the stream answers,
/// if it answers one.
pub(in crate::upstream) async fn read_event(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
    calls: &dyn Calls,
    request: Option<i64>,
) -> io::Result<Incoming> {
    // The field's name comes in addition.
    const FIELD: usize = "data: ".len() + 1;
    let mut data: Option<Arrived> = None;
    loop {
        let max = max_bytes + FIELD;
        let line = match data {
            None => Assembly::of(max, calls, request),
            // Only the message's beginning shows where its texts are.
            Some(_) => Assembly::plain(max, calls.charge()),
        };
        match read_line(input, line).await? {
            Incoming::End => return Ok(Incoming::End),
            refused @ Incoming::Refused { .. } => return Ok(refused),
            Incoming::Message(mut line) => {
                let bytes = line.bytes;
                let bytes = bytes.slice(..bytes.len() - usize::from(bytes.ends_with(b"\r")));
                if bytes.is_empty() {
                    match data.take() {
                        // A priming event has no data.
                        Some(message) if !message.bytes.is_empty() => {
                            return Ok(Incoming::Message(message));
                        }
                        _ => continue,
                    }
                }
                let Some(value) = bytes.strip_prefix(b"data:") else { continue };
                line.bytes = bytes.slice_ref(value.strip_prefix(b" ").unwrap_or(value));
                data = Some(match data {
                    None => line,
                    Some(before) if before.bytes.len() + line.bytes.len() > max_bytes => {
                        return Ok(Incoming::Refused { answers: None, why: Refusal::TooLong });
                    }
                    Some(mut before) => {
                        before.charge.add(line.charge);
                        let mut joined = BytesMut::from(before.bytes);
                        joined.extend_from_slice(b"\n");
                        joined.extend_from_slice(&line.bytes);
                        Arrived { bytes: joined.freeze(), ..before }
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use crate::{handler::Receiving, upstream::budget::Charge};

    struct NoCalls;

    impl Calls for NoCalls {
        fn charge(&self) -> Charge {
            Charge::default()
        }

        fn receiving(&self, _: Option<i64>, _: &[u8]) -> Option<Arc<Receiving>> {
            None
        }

        fn waits_for(&self, _: &Receiving) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn events_are_read_one_by_one() {
        let text = "id: 1\nretry: 5\ndata:\n\n: comment\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\n\ndata: cut";
        let mut input = tokio::io::BufReader::with_capacity(5, text.as_bytes());
        let mut messages = Vec::new();
        while let Incoming::Message(message) =
            read_event(&mut input, 100, &NoCalls, None).await.unwrap()
        {
            messages.push(String::from_utf8(message.bytes.to_vec()).unwrap());
        }
        assert_eq!(messages, ["{\"a\":\n1}", "x"]);
        let long = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{}\"}}\n\n",
            "x".repeat(500)
        );
        let mut input = long.as_bytes();
        let event = read_event(&mut input, 100, &NoCalls, None).await.unwrap();
        assert!(matches!(event, Incoming::Refused { why: Refusal::TooLong, .. }));
    }
}
