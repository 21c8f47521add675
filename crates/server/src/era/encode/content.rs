//! Encodes large content chunk by chunk, so that a complete message need not fit in memory.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use larder_protocol::{Fault, OtherMembers, RequestId};
use larder_store::store::{ContentStream, Kind};
use memchr::memmem;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{json, value::RawValue};

use super::{
    encoder::{Encoded, ResponseEncoder},
    escape::escape,
    others,
};
use crate::dispatch::{CacheHint, ContentReply, ReadReply, ToolReply};

/// Bytes of content in a chunk before escaping or encoding. A multiple of 3, the size of a
/// base64 group.
const CHUNK_BYTES: usize = 96 << 10;

/// A part of a message.
enum MessagePart {
    /// JSON that is already encoded.
    Json(Bytes),
    /// The content of a JSON string.
    Content(Kind, ContentStream),
}

/// Encodes the result of `resources/read`: complete if the content fits in one chunk.
///
/// # Errors
/// The beginning of the content cannot be read. Nothing has been sent then.
pub(super) async fn read(
    id: &RequestId,
    read: ReadReply,
    hint: CacheHint,
    encoder: &ResponseEncoder,
) -> Result<Encoded, Fault> {
    let ReadReply { uri, contents, meta } = read;
    let mut meta = meta.map(MetaObject);
    let others = others::take_own(&mut meta);
    let mut json = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{{}"contents":["#,
        json!(id),
        encoder.leading_members(hint, meta)?,
    );

    let mut parts = Vec::new();
    for (index, content) in contents.into_iter().enumerate() {
        let ContentReply { uri, mime_type, kind, chunks, meta } = content;
        json += if index > 0 { "," } else { "" };
        let mut described = json!({ "uri": uri, "mimeType": mime_type });
        if let Some(meta) = meta {
            described["_meta"] = meta.into();
            OtherMembers::restore(&mut described);
        }
        let described = described.to_string();
        // The content follows within the same object.
        json += described.strip_suffix('}').unwrap_or(&described);
        json += ",";

        json += match kind {
            Kind::Text => r#""text":""#,
            Kind::Binary => r#""blob":""#,
        };

        parts.extend([
            MessagePart::Json(std::mem::take(&mut json).into()),
            MessagePart::Content(kind, chunks),
        ]);
        json += r#""}"#;
    }

    let end = [json.as_bytes(), b"]", &*others::following(&others)?, b"}}"].concat();
    parts.push(MessagePart::Json(end.into()));

    let mut chunks = encode_parts(parts).boxed();
    let mut beginning = Vec::new();
    while let Some(chunk) = chunks.next().await {
        beginning.extend_from_slice(&chunk.map_err(|error| {
            tracing::error!(%error, uri, "a resource cannot be read");
            Fault::Unavailable(format!("Reading {uri} failed. Try again shortly."))
        })?);
        if beginning.len() > CHUNK_BYTES {
            let beginning = stream::iter([Ok(beginning.into())]);
            return Ok(Encoded::Chunks(beginning.chain(chunks).boxed()));
        }
    }

    Ok(Encoded::Complete(beginning.into()))
}

/// Encodes the result of a tool: in chunks if it has text that is larger than one chunk, and block by
/// block if blocks have members that their types do not have.
/// `frame` encodes the response with the given result.
pub(super) fn tool_result(
    reply: Box<ToolReply>,
    frame: impl FnOnce(&CallToolResult) -> Result<Bytes, Fault>,
) -> Result<Encoded, Fault> {
    let ToolReply { mut result, exact, .. } = *reply;
    let others = others::take_own(&mut result.meta);
    let frame = |result: &mut CallToolResult| {
        let response = match exact {
            Some(exact) => with_exact_content(result, &exact, frame),
            None => frame(result),
        };
        others::append(response?, &others)
    };
    let is_large = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.len() > CHUNK_BYTES);

    let has_large = result.content.iter().any(is_large);
    if !has_large && !result.content.iter().any(others::block_has_others) {
        return frame(&mut result).map(Encoded::Complete);
    }

    let blocks = std::mem::take(&mut result.content);
    // The id, the result type and the server info precede the content. None of them has a
    // member named `content`.
    let (head, tail) = split_after(frame(&mut result)?, br#""content":["#)?;
    let mut parts = vec![MessagePart::Json(head)];
    for (index, mut block) in blocks.into_iter().enumerate() {
        if index > 0 {
            parts.push(MessagePart::Json(Bytes::from_static(b",")));
        }

        let large = match &mut block {
            ContentBlock::Text(text) if text.text.len() > CHUNK_BYTES => {
                Some(std::mem::take(&mut text.text))
            }
            _ => None,
        };

        let json = others::block(&block)?;
        let Some(large) = large else {
            parts.push(MessagePart::Json(json));
            continue;
        };

        // The type of the block precedes its text.
        let (head, tail) = split_after(json, br#""text":""#)?;
        let text = stream::iter([Ok(Bytes::from(large))]).boxed();
        parts.extend([
            MessagePart::Json(head),
            MessagePart::Content(Kind::Text, text),
            MessagePart::Json(tail),
        ]);
    }

    parts.push(MessagePart::Json(tail));
    if !has_large {
        let json = parts.iter().filter_map(|part| match part {
            MessagePart::Json(json) => Some(&**json),
            MessagePart::Content(..) => None,
        });
        return Ok(Encoded::Complete(json.collect::<Vec<_>>().concat().into()));
    }
    Ok(Encoded::Chunks(encode_parts(parts).boxed()))
}

/// The response with the structured content as it was sent.
fn with_exact_content(
    result: &mut CallToolResult,
    exact: &RawValue,
    frame: impl FnOnce(&CallToolResult) -> Result<Bytes, Fault>,
) -> Result<Bytes, Fault> {
    const PLACEHOLDER: &str = "larder:exact-content";
    result.structured_content = Some(PLACEHOLDER.into());

    let opening = format!("\"structuredContent\":\"{PLACEHOLDER}\"");
    let (head, tail) = split_after(frame(result)?, opening.as_bytes())?;
    let head = &head[..head.len() - PLACEHOLDER.len() - 2];
    Ok([head, exact.get().as_bytes(), &tail].concat().into())
}

fn encode_parts(parts: Vec<MessagePart>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::iter(parts).flat_map(|part| match part {
        MessagePart::Json(json) => stream::iter([Ok(json)]).boxed(),
        MessagePart::Content(kind, chunks) => ContentEncoder::new(kind, chunks).stream().boxed(),
    })
}

/// Splits JSON after the first occurrence of `opening`.
fn split_after(mut json: Bytes, opening: &[u8]) -> Result<(Bytes, Bytes), Fault> {
    let end = memmem::find(&json, opening).map(|start| start + opening.len());
    let end = end.ok_or_else(|| Fault::Internal("The result cannot be encoded as JSON.".into()))?;
    Ok((json.split_to(end), json))
}

/// Encodes content as a JSON string, one chunk at a time.
struct ContentEncoder {
    kind: Kind,
    chunks: ContentStream,
    /// The rest of the last chunk that was read.
    unread: Bytes,
    /// An incomplete character or base64 group at the end of the last chunk.
    carry: Vec<u8>,
    ended: bool,
}

impl ContentEncoder {
    fn new(kind: Kind, chunks: ContentStream) -> Self {
        Self { kind, chunks, unread: Bytes::new(), carry: Vec::new(), ended: false }
    }

    /// Encodes the next chunk. Returns whether another one may follow.
    async fn encode_next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        while self.unread.is_empty() && !self.ended {
            match self.chunks.next().await {
                Some(chunk) => self.unread = chunk?,
                None => self.ended = true,
            }
        }

        let chunk = self.unread.split_to(self.unread.len().min(CHUNK_BYTES));
        if chunk.is_empty() {
            let rest = std::mem::take(&mut self.carry);
            self.encode_all(&rest, out)?;
            return Ok(false);
        }
        if self.carry.is_empty() {
            self.encode_complete(&chunk, out)?;
        } else {
            let joined = [&std::mem::take(&mut self.carry), &chunk[..]].concat();
            self.encode_complete(&joined, out)?;
        }
        Ok(true)
    }

    fn stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(Some(self), |content| async move {
            let mut content = content?;
            let mut out = Vec::new();

            match content.encode_next(&mut out).await {
                Ok(more) => Some((Ok(out.into()), more.then_some(content))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Encodes complete characters or base64 groups and keeps the rest.
    fn encode_complete(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let end = match self.kind {
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

        let (complete, rest) = bytes.split_at(end);
        self.carry.extend_from_slice(rest);
        self.encode_all(complete, out)
    }

    fn encode_all(&self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self.kind {
            Kind::Text => escape(std::str::from_utf8(bytes).map_err(|_| not_text())?, out),
            Kind::Binary => {
                let start = out.len();
                let padded = bytes.len().div_ceil(3) * 4;
                out.resize(start + padded, 0);
                BASE64_STANDARD.encode_slice(bytes, &mut out[start..]).map_err(io::Error::other)?;
            }
        }

        Ok(())
    }
}

fn not_text() -> io::Error {
    io::Error::other("the text is not UTF-8")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use larder_protocol::ProtocolVersion;

    use crate::{
        dispatch::{Reply, Traffic},
        era::{Era, encode_reply},
    };

    fn reply(kind: Kind, chunks: Vec<Vec<u8>>) -> Reply {
        let chunks = stream::iter(chunks.into_iter().map(|p| Ok(p.into()))).boxed();
        read_reply(vec![ContentReply {
            uri: "a:\"b".into(),
            mime_type: "text/plain".into(),
            kind,
            chunks,
            meta: None,
        }])
    }

    fn read_reply(contents: Vec<ContentReply>) -> Reply {
        let uri = contents[0].uri.clone();
        Reply::Read(ReadReply { uri, contents, meta: None }, CacheHint::NO_CACHE)
    }

    async fn encode(era: Era, reply: Reply) -> (Value, usize) {
        let info = rmcp::model::Implementation::new("s", "1");
        let traffic = Arc::<Traffic>::default();
        let is_result = matches!(reply, Reply::CallTool(_));
        let max = ProtocolVersion::LATEST;
        let encoder = ResponseEncoder::new(era, &info, max, Arc::clone(&traffic));
        let id = RequestId::String("\"content\":[ \"text\":\"".into());

        let encoded = encode_reply(&id, reply, &encoder).await.unwrap();
        let chunks: Vec<Bytes> = match encoded {
            Encoded::Complete(message) => vec![message],
            Encoded::Chunks(chunks) => chunks.map(Result::unwrap).collect().await,
        };

        assert!(chunks.iter().all(|chunk| chunk.len() <= 8 * CHUNK_BYTES));
        let sent = chunks.concat();
        let returned = if is_result { sent.len() as u64 } else { 0 };
        assert_eq!(traffic.counts().returned_bytes, returned);

        let message: Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(message["id"], "\"content\":[ \"text\":\"");
        (message, chunks.len())
    }

    #[tokio::test]
    async fn content_is_complete_wherever_its_chunks_end() {
        let text = "a\"\\\n\u{1}ä€😀";
        for size in 1..=text.len() {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let (message, _) = encode(Era::Legacy, reply(Kind::Text, chunks.clone())).await;
            assert_eq!(message["result"]["contents"][0]["text"], text);

            let (message, _) = encode(Era::Modern, reply(Kind::Binary, chunks)).await;
            let blob = message["result"]["contents"][0]["blob"].as_str().unwrap();
            assert_eq!(BASE64_STANDARD.decode(blob).unwrap(), text.as_bytes());
            assert_eq!(message["result"]["resultType"], "complete");
        }

        let (message, chunks) = encode(Era::Legacy, reply(Kind::Text, vec![])).await;
        assert_eq!(chunks, 1);
        assert_eq!(
            message["result"],
            json!({ "contents": [{ "uri": "a:\"b", "mimeType": "text/plain", "text": "" }] })
        );
    }

    #[tokio::test]
    async fn large_content_is_sent_in_chunks() {
        let text = "€".repeat(CHUNK_BYTES);
        let content = vec![text.clone().into_bytes()];

        let (message, chunks) = encode(Era::Modern, reply(Kind::Text, content.clone())).await;
        assert_eq!(message["result"]["contents"][0]["text"], text);
        assert!(chunks > 3, "{chunks}");

        let (message, _) = encode(Era::Modern, reply(Kind::Binary, content)).await;
        let blob = message["result"]["contents"][0]["blob"].as_str().unwrap();
        assert_eq!(BASE64_STANDARD.decode(blob).unwrap(), text.as_bytes());
    }

    #[tokio::test]
    async fn large_text_of_a_tool_is_sent_in_chunks_and_equals_the_plain_encoding() {
        let large = "line \"of\" text\n".repeat(CHUNK_BYTES / 8);
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
            let (message, chunks) =
                encode(era, Reply::CallTool(Box::new(result.clone().into()))).await;

            expected.result_type =
                message["result"].get("resultType").map(|_| rmcp::model::ResultType::COMPLETE);
            let mut expected = serde_json::to_value(expected).unwrap();
            if let Some(meta) = message["result"].get("_meta") {
                expected["_meta"] = meta.clone();
            }

            assert_eq!(message["result"], expected);
            assert!(chunks > 5, "{chunks}");
        }
    }

    #[tokio::test]
    async fn several_contents_are_sent_in_order() {
        let large = "line\n".repeat(CHUNK_BYTES);
        let content = |uri: &str, kind, bytes: &str| ContentReply {
            uri: uri.into(),
            mime_type: "text/plain".into(),
            kind,
            chunks: stream::iter([Ok(bytes.to_owned().into())]).boxed(),
            meta: json!({ "of": uri }).as_object().cloned(),
        };

        let reply = read_reply(vec![
            content("a:1", Kind::Text, "one"),
            content("a:2", Kind::Text, &large),
            content("a:3", Kind::Binary, "three"),
        ]);

        let (message, _) = encode(Era::Modern, reply).await;
        let sent = |uri: &str, member: &str, value: &str| json!({ "uri": uri, "mimeType": "text/plain", "_meta": { "of": uri }, member: value });
        assert_eq!(
            message["result"]["contents"],
            json!([
                sent("a:1", "text", "one"),
                sent("a:2", "text", &large),
                sent("a:3", "blob", &BASE64_STANDARD.encode("three"))
            ])
        );
    }

    #[tokio::test]
    async fn a_failure_midway_never_looks_complete() {
        let chunk = || Ok(vec![b'x'; CHUNK_BYTES].into());
        let chunks = stream::iter([chunk(), chunk(), Err(io::Error::other("gone"))]).boxed();
        let uri = "a:b".into();
        let mime_type = "text/plain".into();
        let reply =
            read_reply(vec![ContentReply { uri, mime_type, kind: Kind::Text, chunks, meta: None }]);

        let info = rmcp::model::Implementation::new("s", "1");
        let encoder =
            ResponseEncoder::new(Era::Legacy, &info, ProtocolVersion::LATEST, Arc::default());

        let encoded = encode_reply(&RequestId::Number(1), reply, &encoder);
        assert!(encoded.await.unwrap().into_bytes().await.is_err());
    }
}
