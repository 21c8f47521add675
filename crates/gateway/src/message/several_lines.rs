//! [`MessageLines`]: the messages of a program, one a line. JSON that a program prints over several
//! lines is put together again.

use std::{io, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use super::{
    assembly::{Arrived, Assembly, Calls},
    line::{IncomingLine, read_line},
    sse::join,
};

/// How long the next line of a message may take. A message that breaks off is read then.
const NEXT_LINE: Duration = Duration::from_millis(500);

/// Reads the messages of a program.
pub(crate) struct MessageLines<'a, R> {
    input: R,
    max_bytes: usize,
    calls: &'a dyn Calls,
    /// A message that came after one that broke off.
    next: Option<Arrived>,
}

impl<'a, R: AsyncBufRead + Unpin> MessageLines<'a, R> {
    pub(crate) fn new(input: R, max_bytes: usize, calls: &'a dyn Calls) -> Self {
        Self { input, max_bytes, calls, next: None }
    }

    /// Reads the next message.
    pub(crate) async fn read(&mut self) -> io::Result<IncomingLine> {
        let first = match self.next.take() {
            Some(line) => IncomingLine::Message(line),
            None => self.line(None).await?,
        };
        let IncomingLine::Message(mut begun) = first else { return Ok(first) };
        let Some(mut open) = Open::begun_by(&begun.bytes) else {
            return Ok(IncomingLine::Message(begun));
        };

        while !open.is_closed() {
            let waiting = tokio::time::timeout(NEXT_LINE, self.input.fill_buf()).await;
            let has_more = matches!(&waiting, Ok(Ok(more)) if !more.is_empty());
            if !has_more {
                break;
            }

            let line = match self.line(Some(&begun.bytes)).await? {
                IncomingLine::Message(line) => line,
                other => return Ok(other),
            };
            if is_message(&line.bytes) {
                self.next = Some(line);
                break;
            }
            open.read(&line.bytes);
            begun = match join(begun, line, self.max_bytes, self.calls, None).await {
                Ok(joined) => joined,
                Err((what, why)) => return Ok(IncomingLine::Refused { what, why }),
            };
        }
        Ok(IncomingLine::Message(begun))
    }

    /// Reads a line. Only the beginning of a message shows where its texts are and who pays.
    async fn line(&mut self, begun: Option<&Bytes>) -> io::Result<IncomingLine> {
        let line = match begun {
            None => Assembly::of(self.max_bytes, self.calls, None),
            Some(begun) => Assembly::plain(self.max_bytes, self.calls.charge(None, begun)),
        };
        read_line(&mut self.input, line).await
    }
}

/// Whether a line that follows the beginning of a message is a message of its own.
fn is_message(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Members {
        jsonrpc: Option<IgnoredAny>,
        id: Option<IgnoredAny>,
        method: Option<IgnoredAny>,
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }

    let line = line.trim_ascii_end();
    if !line.starts_with(b"{") || !line.ends_with(b"}") {
        return false;
    }
    serde_json::from_slice(line).is_ok_and(|members: Members| {
        let Members { jsonrpc, id, method, result, error } = members;
        let is_answer = id.is_some() && (result.is_some() || error.is_some());
        jsonrpc.is_some() || method.is_some() || is_answer
    })
}

/// The brackets of a message that are open.
struct Open {
    depth: usize,
    is_torn: bool,
}

impl Open {
    /// The open brackets after the first line of a message. `None` if no other line belongs to it.
    fn begun_by(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        // A message of one line ends with its bracket.
        if !line.starts_with(b"{") || line.ends_with(b"}") {
            return None;
        }
        let mut open = Self { depth: 0, is_torn: false };
        open.read(line);
        (!open.is_closed()).then_some(open)
    }

    /// Reads a line. Text that breaks off within a string is no JSON.
    fn read(&mut self, line: &[u8]) {
        let mut is_string = false;
        let mut is_escaped = false;
        for byte in line {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_string => is_escaped = true,
                b'"' => is_string = !is_string,
                _ if is_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.is_torn |= is_string;
    }

    fn is_closed(&self) -> bool {
        self.depth == 0 || self.is_torn
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use larder_server::handler::Receiving;
    use tokio::io::{AsyncWriteExt, BufReader, duplex};

    use super::*;
    use crate::budget::Charge;

    struct NoCalls;

    impl Calls for NoCalls {
        fn charge(&self, _: Option<i64>, _: &[u8]) -> Charge {
            Charge::default()
        }

        fn receiving(&self, _: Option<i64>, _: &[u8]) -> Option<Arc<Receiving>> {
            None
        }

        fn waits_for(&self, _: &Receiving) -> bool {
            false
        }
    }

    async fn read_all(text: &str, max_bytes: usize) -> Vec<String> {
        let mut lines = MessageLines::new(text.as_bytes(), max_bytes, &NoCalls);
        let mut read = Vec::new();
        loop {
            match lines.read().await.unwrap() {
                IncomingLine::Message(message) => {
                    read.push(String::from_utf8(message.bytes.to_vec()).unwrap());
                }
                IncomingLine::Refused { why, .. } => read.push(format!("{why:?}")),
                IncomingLine::End => return read,
            }
        }
    }

    #[tokio::test]
    async fn json_over_several_lines_is_one_message() {
        let pretty =
            "{\n  \"id\": 1,\n  \"result\": {\n    \"a\": [\n      \"}\\\"{\"\n    ]\n  }\n}";
        let one = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;

        for (text, expected) in [
            (pretty.to_owned(), vec![pretty]),
            (format!("{one}\n{pretty}\n{one}\n"), vec![one, pretty, one]),
            (format!("{{\n{one}\n"), vec!["{", one]),
            ("{ starting\nno json\n".to_owned(), vec!["{ starting\nno json"]),
            ("{\"a\": \"torn\nnext\n".to_owned(), vec!["{\"a\": \"torn", "next"]),
            ("[INFO] {\nnext".to_owned(), vec!["[INFO] {", "next"]),
        ] {
            assert_eq!(read_all(&text, 1_000).await, expected, "{text}");
        }

        let long = format!("{{\n{}}}\n{one}\n", "\"a\": 1,\n".repeat(1_000));
        let read = read_all(&long, 500).await;
        assert_eq!(
            (read.first().map(String::as_str), read.last().map(String::as_str)),
            (Some("TooLong"), Some(one))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_breaks_off_is_read_after_a_while() {
        let (mut program, output) = duplex(1_000);
        program.write_all(b"{ \"id\": 1,\n").await.unwrap();
        let mut lines = MessageLines::new(BufReader::new(output), 1_000, &NoCalls);
        let IncomingLine::Message(message) = lines.read().await.unwrap() else { panic!() };
        assert_eq!(message.bytes, "{ \"id\": 1,");
    }
}
