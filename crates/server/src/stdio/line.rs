//! Reads lines of a limited length.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

pub(super) enum InputLine {
    Message(Bytes),
    TooLong,
    End,
}

/// Reads a line. Discards lines of more than `max_bytes`.
pub(super) async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => InputLine::TooLong,
                (false, true) => InputLine::End,
                (false, false) => InputLine::Message(line.into()),
            });
        }

        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > max_bytes;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }

        let used = end.map_or(buffer.len(), |index| index + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(if too_long { InputLine::TooLong } else { InputLine::Message(line.into()) });
        }
    }
}
