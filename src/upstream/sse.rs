//! Messages in a stream of server-sent events, of a limited length.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncBufRead;

use super::{
    budget::{Charge, MessageBudget},
    line::{Incoming, Refusal, read_line},
};

/// Reads the data of the next event that has any.
pub(super) async fn read_event(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
    budget: &Arc<MessageBudget>,
) -> io::Result<Incoming> {
    // The field's name comes in addition.
    const FIELD: usize = "data: ".len() + 1;
    let mut data: Option<(Bytes, Charge)> = None;
    loop {
        match read_line(input, max_bytes + FIELD, budget.charge()).await? {
            Incoming::End => return Ok(Incoming::End),
            refused @ Incoming::Refused { .. } => return Ok(refused),
            Incoming::Message(line, charge) => {
                let line = line.slice(..line.len() - usize::from(line.ends_with(b"\r")));
                if line.is_empty() {
                    match data.take() {
                        // A priming event has no data.
                        Some((message, charge)) if !message.is_empty() => {
                            return Ok(Incoming::Message(message, charge));
                        }
                        _ => continue,
                    }
                }
                let Some(value) = line.strip_prefix(b"data:") else { continue };
                let value = line.slice_ref(value.strip_prefix(b" ").unwrap_or(value));
                data = Some(match data {
                    None => (value, charge),
                    Some((before, _)) if before.len() + value.len() > max_bytes => {
                        return Ok(Incoming::Refused { answers: None, why: Refusal::TooLong });
                    }
                    Some((before, mut joined_charge)) => {
                        joined_charge.add(charge);
                        let mut joined = BytesMut::from(before);
                        joined.extend_from_slice(b"\n");
                        joined.extend_from_slice(&value);
                        (joined.freeze(), joined_charge)
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
        let budget = Arc::default();
        while let Incoming::Message(message, _) =
            read_event(&mut input, 100, &budget).await.unwrap()
        {
            messages.push(String::from_utf8(message.to_vec()).unwrap());
        }
        assert_eq!(messages, ["{\"a\":\n1}", "x"]);
        let long = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{}\"}}\n\n",
            "x".repeat(500)
        );
        let mut input = long.as_bytes();
        let event = read_event(&mut input, 100, &budget).await.unwrap();
        assert!(matches!(event, Incoming::Refused { why: Refusal::TooLong, .. }));
    }
}
