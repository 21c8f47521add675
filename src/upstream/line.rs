//! Reads messages of a limited length, one a line.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// How much of each end of a discarded line is kept.
const END_BYTES: usize = 128;

pub(super) enum Line {
    Message(Bytes),
    /// The line was longer than allowed, and discarded.
    TooLong {
        /// The id of the request that it answers, if it is a response that says
        /// so at one of its ends.
        answers: Option<i64>,
    },
    End,
}

/// Reads a line. Discards lines of more than `max_bytes`.
pub(super) async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<Line> {
    let mut line = Vec::new();
    // The first and the last bytes, once the line is too long.
    let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
    loop {
        let buffer = input.fill_buf().await?;
        let at_end = buffer.is_empty();
        let feed = memchr::memchr(b'\n', buffer);
        let part = &buffer[..feed.unwrap_or(buffer.len())];
        if ends.is_none() && line.len() + part.len() > max_bytes {
            let mut head = std::mem::take(&mut line);
            let tail = head[head.len().saturating_sub(END_BYTES)..].to_vec();
            head.truncate(END_BYTES);
            head.shrink_to_fit();
            ends = Some((head, tail));
        }
        match &mut ends {
            None => line.extend_from_slice(part),
            Some((head, tail)) => {
                let room = END_BYTES - head.len();
                head.extend_from_slice(&part[..part.len().min(room)]);
                tail.extend_from_slice(&part[part.len().saturating_sub(END_BYTES)..]);
                tail.drain(..tail.len().saturating_sub(END_BYTES));
            }
        }
        let used = feed.map_or(buffer.len(), |index| index + 1);
        input.consume(used);
        if at_end || feed.is_some() {
            return Ok(match ends {
                Some((head, tail)) => Line::TooLong { answers: answered(&head, &tail) },
                None if at_end && line.is_empty() => Line::End,
                None => Line::Message(line.into()),
            });
        }
    }
}

/// The id in the envelope of a response, which implementations write before or
/// after the result.
fn answered(head: &[u8], tail: &[u8]) -> Option<i64> {
    let compact = |bytes: &[u8]| -> String {
        let bytes = bytes.iter().filter(|b| !b.is_ascii_whitespace());
        bytes.map(|b| char::from(*b)).collect()
    };
    let (head, tail) = (compact(head), compact(tail));
    let digits = |text: &str| -> Option<i64> {
        text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
    };
    if let Some(rest) = head.strip_prefix(r#"{"jsonrpc":"2.0","id":"#) {
        return digits(rest);
    }
    let tail = tail.strip_suffix('}')?;
    let tail = tail.strip_suffix(r#","jsonrpc":"2.0""#).unwrap_or(tail);
    let (_, id) = tail.rsplit_once(r#","id":"#)?;
    id.bytes().all(|b| b.is_ascii_digit()).then(|| digits(id))?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    async fn read(text: &str, max: usize) -> Vec<String> {
        let mut input = tokio::io::BufReader::with_capacity(7, text.as_bytes());
        let mut lines = Vec::new();
        loop {
            lines.push(match read_line(&mut input, max).await.unwrap() {
                Line::Message(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::TooLong { answers } => format!("{answers:?}"),
                Line::End => return lines,
            });
        }
    }

    #[tokio::test]
    async fn long_lines_are_discarded_and_say_what_they_answer() {
        let content = "x".repeat(1000);
        let before = format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{"a":"{content}","id":5}}}}"#);
        let after = format!(r#"{{"result":{{"a":"{content}"}},"jsonrpc":"2.0","id":23}}"#);
        let unclear = format!(r#"{{"result":{{"a":"{content}","id":4}}}}"#);
        let text = format!("{before}\nshort\n{after}\n{unclear}\nlast");
        let read = read(&text, 500).await;
        assert_eq!(read, ["Some(17)", "short", "Some(23)", "None", "last"]);
    }
}
