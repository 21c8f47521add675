//! Large content on its way out: escaped or encoded window by window, so that
//! no message is in memory as a whole because of it.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use memchr::memmem;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use super::{
    encoder::{Encoded, ResponseEncoder, json_of},
    escape::escape,
};
use crate::{
    dispatch::{CacheHint, ReadReply},
    protocol::{Fault, RequestId},
    store::{ContentStream, Kind},
};

/// How much is written at once, before it is escaped or encoded. A multiple of
/// three, as base64 has its groups.
const WINDOW: usize = 96 << 10;

/// A part of a message.
enum Part {
    /// JSON as it is.
    Json(Bytes),
    /// What stands between the quotes of a string.
    Content(Kind, ContentStream),
}

/// `resources/read`. The whole message if the content fits into a window.
///
/// # Errors
/// When the content's beginning cannot be read; nothing has been sent then.
pub(super) async fn read(
    id: &RequestId,
    read: ReadReply,
    hint: CacheHint,
    encoder: &ResponseEncoder,
) -> Result<Encoded, Fault> {
    let ReadReply { uri, mime_type, kind, pieces } = read;
    let member = match kind {
        Kind::Text => "text",
        Kind::Binary => "blob",
    };
    let mut head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{{}"contents":[{{"uri":{},"mimeType":{},"{member}":""#,
        json!(id),
        encoder.members(hint),
        json!(uri),
        json!(mime_type)
    )
    .into_bytes();
    let tail = br#""}]}}"#;
    let unreadable = |error: io::Error| {
        tracing::error!(%error, uri, "a resource could not be read");
        Fault::Unavailable(format!("Reading {uri} failed; try again shortly."))
    };
    let mut windows = Windows::new(kind, pieces);
    windows.write(&mut head).await.map_err(unreadable)?;
    let mut second = Vec::new();
    if !windows.write(&mut second).await.map_err(unreadable)? {
        head.extend_from_slice(&second);
        head.extend_from_slice(tail);
        return Ok(Encoded::Whole(head.into()));
    }
    let begin = [head, second].map(|window| Ok(window.into()));
    let end = stream::iter([Ok(Bytes::from_static(tail))]);
    Ok(Encoded::Pieces(stream::iter(begin).chain(windows.stream()).chain(end).boxed()))
}

/// The result of a tool: in pieces where it has text of more than a window.
/// `frame` writes the response with the result that it is given.
pub(super) fn tool_result(
    mut result: Box<CallToolResult>,
    frame: impl FnOnce(&CallToolResult) -> Result<Bytes, Fault>,
) -> Result<Encoded, Fault> {
    let is_large = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.len() > WINDOW);
    if !result.content.iter().any(is_large) {
        return frame(&result).map(Encoded::Whole);
    }
    let blocks = std::mem::take(&mut result.content);
    // What comes before the content is the id, the result's type and who the server is: nowhere
    // there is a member of that name.
    let (head, tail) = within(frame(&result)?, br#""content":["#)?;
    let mut parts = vec![Part::Json(head)];
    for (at, mut block) in blocks.into_iter().enumerate() {
        if at > 0 {
            parts.push(Part::Json(Bytes::from_static(b",")));
        }
        let large = match &mut block {
            ContentBlock::Text(text) if text.text.len() > WINDOW => {
                Some(std::mem::take(&mut text.text))
            }
            _ => None,
        };
        let json = json_of(&block)?;
        let Some(large) = large else {
            parts.push(Part::Json(json));
            continue;
        };
        // The block's type comes before its text.
        let (head, tail) = within(json, br#""text":""#)?;
        let text = stream::iter([Ok(Bytes::from(large))]).boxed();
        parts.extend([Part::Json(head), Part::Content(Kind::Text, text), Part::Json(tail)]);
    }
    parts.push(Part::Json(tail));
    let pieces = stream::iter(parts).flat_map(|part| match part {
        Part::Json(json) => stream::iter([Ok(json)]).boxed(),
        Part::Content(kind, pieces) => Windows::new(kind, pieces).stream().boxed(),
    });
    Ok(Encoded::Pieces(pieces.boxed()))
}

/// What is up to the end of the first `opening`, and what comes after it.
fn within(mut json: Bytes, opening: &[u8]) -> Result<(Bytes, Bytes), Fault> {
    let at = memmem::find(&json, opening).map(|at| at + opening.len());
    let at = at.ok_or_else(|| Fault::Internal("The result could not be written.".into()))?;
    Ok((json.split_to(at), json))
}

/// Content as it stands in a JSON string, a window at a time, wherever its
/// pieces are cut.
struct Windows {
    kind: Kind,
    pieces: ContentStream,
    /// Of the last piece, what has not been written.
    left: Bytes,
    /// The end of a window that makes no whole character, or no whole base64 group.
    carry: Vec<u8>,
    ended: bool,
}

impl Windows {
    fn new(kind: Kind, pieces: ContentStream) -> Self {
        Self { kind, pieces, left: Bytes::new(), carry: Vec::new(), ended: false }
    }

    /// Writes the next window. Says whether there may be another one.
    async fn write(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        while self.left.is_empty() && !self.ended {
            match self.pieces.next().await {
                Some(piece) => self.left = piece?,
                None => self.ended = true,
            }
        }
        let window = self.left.split_to(self.left.len().min(WINDOW));
        if window.is_empty() {
            let rest = std::mem::take(&mut self.carry);
            self.emit(&rest, out)?;
            return Ok(false);
        }
        if self.carry.is_empty() {
            self.emit_whole(&window, out)?;
        } else {
            let joined = [&std::mem::take(&mut self.carry), &window[..]].concat();
            self.emit_whole(&joined, out)?;
        }
        Ok(true)
    }

    fn stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(Some(self), |windows| async move {
            let mut windows = windows?;
            let mut out = Vec::new();
            match windows.write(&mut out).await {
                Ok(more) => Some((Ok(out.into()), more.then_some(windows))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Writes what is whole, and keeps the rest.
    fn emit_whole(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let whole = match self.kind {
            Kind::Binary => bytes.len() - bytes.len() % 3,
            Kind::Text => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    out.reserve(text.len() + text.len() / 8);
                    escape(text, out);
                    return Ok(());
                }
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => return Err(not_text()),
            },
        };
        let (whole, rest) = bytes.split_at(whole);
        self.carry.extend_from_slice(rest);
        self.emit(whole, out)
    }

    fn emit(&self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self.kind {
            Kind::Text => escape(std::str::from_utf8(bytes).map_err(|_| not_text())?, out),
            Kind::Binary => {
                let (from, padded) = (out.len(), bytes.len().div_ceil(3) * 4);
                out.resize(from + padded, 0);
                BASE64_STANDARD.encode_slice(bytes, &mut out[from..]).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

fn not_text() -> io::Error {
    io::Error::other("text that is not UTF-8")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::Value;

    use super::*;
    use crate::{
        dispatch::Reply,
        era::{Era, success},
        protocol::ProtocolVersion,
    };

    fn reply(kind: Kind, pieces: Vec<Vec<u8>>) -> Reply {
        let pieces = stream::iter(pieces.into_iter().map(|p| Ok(p.into()))).boxed();
        let uri = "a:\"b".into();
        Reply::Read(ReadReply { uri, mime_type: "text/plain".into(), kind, pieces }, CacheHint::OWN)
    }

    async fn sent(era: Era, reply: Reply) -> (Value, usize) {
        let info = rmcp::model::Implementation::new("s", "1");
        let encoder = ResponseEncoder::new(era, &info, ProtocolVersion::LATEST);
        let id = RequestId::String("\"content\":[ \"text\":\"".into());
        let encoded = success(&id, reply, &encoder).await.unwrap();
        let pieces: Vec<Bytes> = match encoded {
            Encoded::Whole(whole) => vec![whole],
            Encoded::Pieces(pieces) => pieces.map(Result::unwrap).collect().await,
        };
        assert!(pieces.iter().all(|piece| piece.len() <= 8 * WINDOW));
        let message: Value = serde_json::from_slice(&pieces.concat()).unwrap();
        assert_eq!(message["id"], "\"content\":[ \"text\":\"");
        (message, pieces.len())
    }

    #[tokio::test]
    async fn content_is_whole_wherever_its_pieces_are_cut() {
        let text = "a\"\\\n\u{1}ä€😀";
        for size in 1..=text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let (message, _) = sent(Era::Legacy, reply(Kind::Text, pieces.clone())).await;
            assert_eq!(message["result"]["contents"][0]["text"], text);
            let (message, _) = sent(Era::Modern, reply(Kind::Binary, pieces)).await;
            let blob = message["result"]["contents"][0]["blob"].as_str().unwrap();
            assert_eq!(BASE64_STANDARD.decode(blob).unwrap(), text.as_bytes());
            assert_eq!(message["result"]["resultType"], "complete");
        }
        let (message, pieces) = sent(Era::Legacy, reply(Kind::Text, vec![])).await;
        assert_eq!(pieces, 1);
        assert_eq!(
            message["result"],
            json!({ "contents": [{ "uri": "a:\"b", "mimeType": "text/plain", "text": "" }] })
        );
    }

    #[tokio::test]
    async fn large_content_goes_out_in_windows() {
        let text = "€".repeat(WINDOW);
        let whole = vec![text.clone().into_bytes()];
        let (message, pieces) = sent(Era::Modern, reply(Kind::Text, whole.clone())).await;
        assert_eq!(message["result"]["contents"][0]["text"], text);
        assert!(pieces > 3, "{pieces}");
        let (message, _) = sent(Era::Modern, reply(Kind::Binary, whole)).await;
        let blob = message["result"]["contents"][0]["blob"].as_str().unwrap();
        assert_eq!(BASE64_STANDARD.decode(blob).unwrap(), text.as_bytes());
    }

    #[tokio::test]
    async fn large_text_of_a_tool_goes_out_in_windows_and_as_the_rest_has_it() {
        let large = "line \"of\" text\n".repeat(WINDOW / 8);
        let mut result = CallToolResult::success(vec![
            ContentBlock::text(""),
            ContentBlock::text(large.clone()),
            ContentBlock::text("\"text\":\""),
            ContentBlock::image("aGk=", "image/png"),
            ContentBlock::text(large),
        ]);
        result.structured_content = Some(json!({ "content": [], "text": "" }));
        for era in [Era::Legacy, Era::Modern] {
            let mut expected = result.clone();
            let (message, pieces) = sent(era, Reply::CallTool(Box::new(result.clone()))).await;
            expected.result_type =
                message["result"].get("resultType").map(|_| rmcp::model::ResultType::COMPLETE);
            let mut expected = serde_json::to_value(expected).unwrap();
            if let Some(meta) = message["result"].get("_meta") {
                expected["_meta"] = meta.clone();
            }
            assert_eq!(message["result"], expected);
            assert!(pieces > 5, "{pieces}");
        }
    }

    #[tokio::test]
    async fn a_failure_midway_never_looks_whole() {
        let piece = || Ok(Bytes::from_static(b"x"));
        let pieces = stream::iter([piece(), piece(), Err(io::Error::other("gone"))]).boxed();
        let (uri, mime_type) = ("a:b".into(), "text/plain".into());
        let reply = ReadReply { uri, mime_type, kind: Kind::Text, pieces };
        let info = rmcp::model::Implementation::new("s", "1");
        let encoder = ResponseEncoder::new(Era::Legacy, &info, ProtocolVersion::LATEST);
        let encoded = success(&RequestId::Number(1), Reply::Read(reply, CacheHint::OWN), &encoder);
        assert!(encoded.await.unwrap().whole().await.is_err());
    }
}
