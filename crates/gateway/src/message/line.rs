//! Reads messages of a limited length, one a line.

use std::io;

use larder_protocol::RequestId;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use super::{
    assembly::{Arrived, Assembly},
    refusal::MessageRefusal,
};

/// How much of each end of a discarded line is kept.
const END_BYTES: usize = 128;

/// An input of the upstream: a message, or the end of what it sends.
pub(crate) enum IncomingLine {
    Message(Arrived),
    /// A message that was discarded.
    Refused {
        what: Discarded,
        why: MessageRefusal,
    },
    End,
}

/// The kind of a discarded message, as far as its ends say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// The response to that request.
    Answer(i64),
    /// A request of the upstream, which waits for its answer.
    Question(RequestId),
    /// A notification, or a request whose id is not at an end.
    Other,
    Unknown,
}

/// Reads a line into the message. Discards it if the message is refused.
pub(crate) async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    message: Assembly<'_>,
) -> io::Result<IncomingLine> {
    let mut message = Some(message);
    // The first and the last bytes, once the message is refused.
    let mut ends: Option<(Vec<u8>, Vec<u8>, MessageRefusal)> = None;

    loop {
        let buffer = input.fill_buf().await?;
        let at_end = buffer.is_empty();
        let feed = memchr::memchr(b'\n', buffer);
        let part = &buffer[..feed.unwrap_or(buffer.len())];

        if let Some(assembly) = &mut message
            && let Err(why) = assembly.push(part).await
        {
            let kept = message.take().map(|message| message.into_ends(END_BYTES));
            let (head, tail) = kept.unwrap_or_default();
            ends = Some((head, tail, why));
        }

        if let Some((head, tail, _)) = &mut ends {
            let room = END_BYTES - head.len();
            head.extend_from_slice(&part[..part.len().min(room)]);
            tail.extend_from_slice(&part[part.len().saturating_sub(END_BYTES)..]);
            tail.drain(..tail.len().saturating_sub(END_BYTES));
        }

        let used = feed.map_or(buffer.len(), |index| index + 1);
        input.consume(used);
        if at_end || feed.is_some() {
            return Ok(match (message, ends) {
                (_, Some((head, tail, why))) => {
                    IncomingLine::Refused { what: Discarded::between(&head, &tail), why }
                }
                (Some(message), _) if !at_end || !message.is_empty() => {
                    IncomingLine::Message(message.finish())
                }
                _ => IncomingLine::End,
            });
        }
    }
}

/// The id of the request that a message answers, if it is a response that says so at one of its
/// ends.
pub(crate) fn answered_by(message: &[u8]) -> Option<i64> {
    Discarded::by(message).answers()
}

/// The id of the request that a message answers, if its first bytes say so.
pub(crate) fn answered_first(head: &[u8]) -> Option<i64> {
    Discarded::between(&head[..head.len().min(END_BYTES)], &[]).answers()
}

impl Discarded {
    /// The kind of a message, as far as its ends say it.
    pub(crate) fn by(message: &[u8]) -> Self {
        let head = &message[..message.len().min(END_BYTES)];
        Self::between(head, &message[message.len().saturating_sub(END_BYTES)..])
    }

    fn answers(self) -> Option<i64> {
        match self {
            Self::Answer(id) => Some(id),
            Self::Question(_) | Self::Other | Self::Unknown => None,
        }
    }

    /// Looks for the envelope, whose members implementations write before or after the result.
    fn between(head: &[u8], tail: &[u8]) -> Self {
        let head = compact(head);
        let tail = compact(tail);
        let begun = without_version(head.strip_prefix('{').unwrap_or_default());
        let after_id = begun.strip_prefix(r#""id":"#).and_then(|id| id.split_once(','));
        let (id, next) = after_id.map_or((None, begun), |(id, next)| (Some(id), next));
        // The version comes after the id if members are sorted.
        let next = without_version(next);

        if next.starts_with(r#""method":"#) {
            let id = id.or_else(|| member_at_end(&tail)).and_then(request_id);
            return id.map_or(Self::Other, Self::Question);
        }
        let first = begun.strip_prefix(r#""id":"#).and_then(digits);
        first.or_else(|| id_at_end(&tail)).map_or(Self::Unknown, Self::Answer)
    }
}

/// The members of an envelope after the version, if that comes first.
fn without_version(members: &str) -> &str {
    members.strip_prefix(r#""jsonrpc":"2.0","#).unwrap_or(members)
}

/// The id at the end of an envelope.
fn id_at_end(tail: &str) -> Option<i64> {
    let id = member_at_end(tail)?;
    let is_id = |id: &str| id.bytes().all(|b| b.is_ascii_digit());
    is_id(id.trim_matches('"')).then(|| digits(id))?
}

/// The text after the last `id`, up to the end of an envelope.
fn member_at_end(tail: &str) -> Option<&str> {
    let tail = tail.strip_suffix('}')?;
    let tail = tail.strip_suffix(r#","jsonrpc":"2.0""#).unwrap_or(tail);
    tail.rsplit_once(r#","id":"#).map(|(_, id)| id)
}

/// The id of a request: a string or an integer.
fn request_id(id: &str) -> Option<RequestId> {
    let text = id.strip_prefix('"').and_then(|id| id.strip_suffix('"'));
    match text {
        Some(text) if !text.contains(['"', '\\']) => Some(RequestId::String(text.into())),
        Some(_) => None,
        None => id.parse().ok().map(RequestId::Number),
    }
}

/// The number with which a text begins. Some upstreams write it as a string.
fn digits(text: &str) -> Option<i64> {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
}

fn compact(bytes: &[u8]) -> String {
    let bytes = bytes.iter().filter(|b| !b.is_ascii_whitespace());
    bytes.map(|b| char::from(*b)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::budget::{
        Charge,
        tests::{of, payer},
    };

    async fn read(text: &str, max: usize) -> Vec<String> {
        let mut input = tokio::io::BufReader::with_capacity(7, text.as_bytes());
        let mut lines = Vec::new();
        loop {
            lines.push(
                match read_line(&mut input, Assembly::plain(max, Charge::default())).await.unwrap()
                {
                    IncomingLine::Message(line) => String::from_utf8(line.bytes.to_vec()).unwrap(),
                    IncomingLine::Refused { what, .. } => format!("{what:?}"),
                    IncomingLine::End => return lines,
                },
            );
        }
    }

    #[tokio::test]
    async fn long_lines_are_discarded_and_say_what_they_answer() {
        let content = "x".repeat(1000);
        let before = format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{"a":"{content}","id":5}}}}"#);
        let after = format!(r#"{{"result":{{"a":"{content}"}},"jsonrpc":"2.0","id":23}}"#);
        let unclear = format!(r#"{{"result":{{"a":"{content}","id":4}}}}"#);
        let question = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"a","params":"{content}"}}"#);
        let sorted = format!(r#"{{"id":"q","jsonrpc":"2.0","method":"a","params":"{content}"}}"#);
        let late = format!(r#"{{"method":"a","params":{{"a":"{content}"}},"id":6}}"#);
        let notified = format!(r#"{{"method":"a","params":{{"a":"{content}","id":6}}}}"#);
        let lines = [&before, "short", &after, &unclear, &question, &sorted, &late, &notified];

        let read = read(&lines.join("\n"), 500).await;
        let kinds = [
            "Answer(17)",
            "short",
            "Answer(23)",
            "Unknown",
            "Question(Number(5))",
            "Question(String(\"q\"))",
            "Question(Number(6))",
            "Other",
        ];
        assert_eq!(read, kinds);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_without_room_beside_others_is_discarded_after_a_while() {
        let budget = of(1 << 20);
        let mut other = budget.charge(payer("ana", "fs"));
        other.cover(1 << 20).await.unwrap();

        let long = format!(r#"{{"jsonrpc":"2.0","id":17,"result":"{}"}}"#, "x".repeat(300_000));
        let text = format!("{long}\nshort\n{long}\n");
        let mut input = text.as_bytes();
        let next = || Assembly::plain(1 << 20, budget.charge(payer("ana", "fs")));

        let refused = read_line(&mut input, next()).await.unwrap();
        let why = MessageRefusal::NoRoom;
        assert!(
            matches!(refused, IncomingLine::Refused { what: Discarded::Answer(17), why: w } if w == why)
        );

        let short = read_line(&mut input, next()).await.unwrap();
        assert!(matches!(short, IncomingLine::Message(line) if line.bytes == "short"));

        drop(other);
        let read = read_line(&mut input, next()).await.unwrap();
        assert!(matches!(read, IncomingLine::Message(line)
            if line.bytes == long && !line.charge.is_empty()));
    }
}
