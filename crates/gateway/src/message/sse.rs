//! Messages in a stream of server-sent events, of a limited length.

use std::{io, time::Duration};

use bytes::BytesMut;
use reqwest::header::HeaderValue;
use serde::de::IgnoredAny;
use tokio::io::AsyncBufRead;

use super::{
    assembly::{Arrived, Assembly, Calls},
    line::{Discarded, IncomingLine, read_line},
    refusal::MessageRefusal,
};

/// The longest ID of an event, in bytes.
const MAX_ID_BYTES: usize = 1 << 10;

/// The bytes of a line beside the data, which do not count as part of the message.
const FIELD_BYTES: usize = "data: ".len() + 1;

/// The event after which a stream goes on once its connection has ended.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// The ID of the last event that has arrived as a whole.
    pub(crate) last_id: Option<HeaderValue>,
    /// How long the server wants to be left alone before.
    pub(crate) retry: Option<Duration>,
    /// The ID of the event that is arriving.
    arriving: Option<HeaderValue>,
}

impl Position {
    /// Reads a line that is no data. Other fields and comments change nothing.
    fn read(&mut self, line: &[u8]) {
        let value = |name: &[u8]| {
            let value = line.strip_prefix(name)?.strip_prefix(b":")?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        };

        if let Some(id) = value(b"id").filter(|id| id.len() <= MAX_ID_BYTES) {
            self.arriving = HeaderValue::from_bytes(id).ok();
        }
        if let Some(digits) = value(b"retry").and_then(|digits| str::from_utf8(digits).ok())
            && let Ok(millis) = digits.parse()
        {
            self.retry = Some(Duration::from_millis(millis));
        }
    }

    /// An event has arrived as a whole.
    fn arrived(&mut self) {
        if let Some(id) = self.arriving.take() {
            self.last_id = Some(id);
        }
    }
}

/// Reads the data of the next event that has any. `request` is the one that the stream answers,
/// if it answers one. JSON counts as data without a field, and without the line that ends its event.
pub(crate) async fn read_event(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
    calls: &dyn Calls,
    request: Option<i64>,
    position: &mut Position,
) -> io::Result<IncomingLine> {
    let mut data: Option<Arrived> = None;
    let mut is_bare = false;
    loop {
        let max = max_bytes + FIELD_BYTES;
        let line = match data {
            None => Assembly::of(max, calls, request),
            // Only the beginning of the message shows where its texts are and who pays.
            Some(ref before) => Assembly::plain(max, calls.charge(request, &before.bytes)),
        };

        match read_line(input, line).await? {
            IncomingLine::End => {
                let last = data.filter(|last| is_json(&last.bytes));
                return Ok(last.map_or(IncomingLine::End, |last| {
                    position.arrived();
                    IncomingLine::Message(last)
                }));
            }
            refused @ IncomingLine::Refused { .. } => return Ok(refused),
            IncomingLine::Message(mut line) => {
                let bytes = line.bytes;
                let bytes = bytes.slice(..bytes.len() - usize::from(bytes.ends_with(b"\r")));
                if bytes.is_empty() {
                    position.arrived();
                    is_bare = false;
                    match data.take() {
                        // A priming event has no data.
                        Some(message) if !message.bytes.is_empty() => {
                            return Ok(IncomingLine::Message(message));
                        }
                        _ => continue,
                    }
                }

                // No field begins so: a body of JSON is labelled as a stream.
                is_bare |= data.is_none() && bytes.starts_with(b"{");
                let Some(value) = data_in(&bytes, is_bare) else {
                    position.read(&bytes);
                    continue;
                };
                line.bytes = bytes.slice_ref(value);
                data = Some(match data {
                    None => line,
                    Some(before) => match join(before, line, max_bytes, calls, request).await {
                        Ok(joined) => joined,
                        Err((what, why)) => return Ok(IncomingLine::Refused { what, why }),
                    },
                });
            }
        }
    }
}

/// The data in a line, which is the line itself where JSON has no field. `None` for another field.
fn data_in(line: &[u8], is_bare: bool) -> Option<&[u8]> {
    if is_bare {
        return Some(line);
    }
    let value = line.strip_prefix(b"data:")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// Whether data is JSON as a whole.
fn is_json(data: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(data).is_ok()
}

/// The data of an event, or a message, so far, with its next line.
pub(super) async fn join(
    mut before: Arrived,
    line: Arrived,
    max_bytes: usize,
    calls: &dyn Calls,
    request: Option<i64>,
) -> Result<Arrived, (Discarded, MessageRefusal)> {
    let discarded = Discarded::by(&before.bytes);
    let length = before.bytes.len() + 1 + line.bytes.len();
    if length > max_bytes {
        return Err((discarded, MessageRefusal::TooLong));
    }

    if before.charge.is_empty() {
        // An event of many short lines is a long message.
        before.charge = calls.charge(request, &before.bytes);
    }
    before.charge.add(line.charge);
    before.charge.cover(length).await.map_err(|_| (discarded, MessageRefusal::NoRoom))?;

    let mut joined = BytesMut::from(before.bytes);
    joined.extend_from_slice(b"\n");
    joined.extend_from_slice(&line.bytes);
    Ok(Arrived { bytes: joined.freeze(), ..before })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use larder_server::handler::Receiving;

    use crate::budget::{
        Charge, MessageBudget,
        tests::{of, payer},
    };

    /// Calls of one owner, with the memory for their messages.
    #[derive(Default)]
    struct NoCalls(Option<Arc<MessageBudget>>);

    impl Calls for NoCalls {
        fn charge(&self, _: Option<i64>, _: &[u8]) -> Charge {
            let budget = self.0.as_ref();
            budget.map(|budget| budget.charge(payer("ana", "fs"))).unwrap_or_default()
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
        let mut position = Position::default();
        while let IncomingLine::Message(message) =
            read_event(&mut input, 100, &NoCalls::default(), None, &mut position).await.unwrap()
        {
            messages.push(String::from_utf8(message.bytes.to_vec()).unwrap());
        }

        assert_eq!(messages, ["{\"a\":\n1}", "x"]);
        assert_eq!(position.last_id.unwrap(), "1");
        assert_eq!(position.retry, Some(Duration::from_millis(5)));

        let long = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{}\"}}\n\n",
            "x".repeat(500)
        );
        let mut input = long.as_bytes();
        let event =
            read_event(&mut input, 100, &NoCalls::default(), None, &mut Position::default())
                .await
                .unwrap();
        assert!(matches!(event, IncomingLine::Refused { why: MessageRefusal::TooLong, .. }));
    }

    #[tokio::test]
    async fn json_is_read_without_the_end_of_its_event_and_without_a_field() {
        for (text, expected) in [
            ("data: {\"a\":1}", vec!["{\"a\":1}"]),
            ("data: {\"a\":1}\n", vec!["{\"a\":1}"]),
            ("id: 1\ndata: {\"a\":\ndata: 1}\n", vec!["{\"a\":\n1}"]),
            ("data: [1]\n\ndata: {\"a\":1}", vec!["[1]", "{\"a\":1}"]),
            ("{\"a\":1}", vec!["{\"a\":1}"]),
            ("\n{\n  \"data\":\n1\n}\n", vec!["{\n  \"data\":\n1\n}"]),
            ("{\"a\":1}\n\ndata: {\"b\":1}\n\n", vec!["{\"a\":1}", "{\"b\":1}"]),
            ("data: {\"a\"", vec![]),
            ("{\"a\"", vec![]),
            ("event: x\nmore: {}\n", vec![]),
        ] {
            let mut input = text.as_bytes();
            let mut position = Position::default();
            let mut messages = Vec::new();
            while let IncomingLine::Message(message) =
                read_event(&mut input, 100, &NoCalls::default(), None, &mut position).await.unwrap()
            {
                messages.push(String::from_utf8(message.bytes.to_vec()).unwrap());
            }
            assert_eq!(messages, expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_stream_goes_on_after_the_last_whole_event() {
        for (text, last) in [
            ("id: a\ndata: 1\n\nid: b\ndata: cut", Some("a")),
            ("id:a\n\n", Some("a")),
            ("id: a\ndata: 1\n\ndata: 2\n\n", Some("a")),
            ("id: a\ndata: 1\n\nid: b\nevent: message\ndata: 2\n\n", Some("b")),
            ("data: 1\n\n", None),
            ("identity: a\nid: \u{1}\nretry: soon\ndata: 1\n\n", None),
            ("", None),
        ] {
            let mut position = Position::default();
            let mut input = text.as_bytes();
            while let IncomingLine::Message(_) =
                read_event(&mut input, 100, &NoCalls::default(), None, &mut position).await.unwrap()
            {
            }
            let id = position.last_id.as_ref().map(|id| id.to_str().unwrap());
            assert_eq!(id, last, "{text:?}");
            assert_eq!(position.retry, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_short_lines_counts_like_any_long_message() {
        let budget = of(4 << 20);
        let calls = NoCalls(Some(Arc::clone(&budget)));
        let lines = format!("data: {}\n", "x".repeat(1000)).repeat(1500);
        let event = format!("{lines}\n");

        let mut first = event.as_bytes();
        let kept =
            read_event(&mut first, 64 << 20, &calls, None, &mut Position::default()).await.unwrap();
        assert!(matches!(&kept, IncomingLine::Message(message) if !message.charge.is_empty()));

        // Two events have no room together.
        let mut second = lines.as_bytes();
        let refused = read_event(&mut second, 64 << 20, &calls, None, &mut Position::default())
            .await
            .unwrap();
        assert!(matches!(refused, IncomingLine::Refused { why: MessageRefusal::NoRoom, .. }));
    }
}
