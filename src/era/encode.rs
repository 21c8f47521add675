//! Replies as JSON-RPC messages, each era in its own dress.

use std::{io, pin::Pin};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use rmcp::model::{MetaObject, ResultType};
use serde::Serialize;
use serde_json::{Value, json};

use super::Era;
use crate::{
    dispatch::{CacheHint, ReadReply, Reply},
    protocol::{Fault, ProtocolVersion, RequestId, SERVER_INFO},
    store::Kind,
    task::TaskView,
};

/// A message on its way out: one line of JSON, whole or still being read.
pub enum Encoded {
    /// All of it.
    Whole(Bytes),
    /// Pieces of it. An error ends it before the message is complete, so that
    /// what was cut short never looks whole.
    Pieces(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
}

impl Encoded {
    /// All of it in one piece.
    ///
    /// # Errors
    /// When the rest of it cannot be read.
    pub async fn whole(self) -> io::Result<Bytes> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Pieces(mut pieces) => {
                let mut whole = Vec::new();
                while let Some(piece) = pieces.next().await {
                    whole.extend_from_slice(&piece?);
                }
                Ok(whole.into())
            }
        }
    }
}

/// What an era adds to a result.
#[derive(Debug, Clone)]
pub struct Dress {
    era: Era,
    versions: Vec<&'static str>,
    server: Value,
}

impl Dress {
    /// For replies of that era, from a server of that name that speaks
    /// versions up to `max`.
    pub fn new(era: Era, server: &rmcp::model::Implementation, max: ProtocolVersion) -> Self {
        // A struct of strings always serializes.
        let server = serde_json::to_value(server).unwrap_or_default();
        Self { era, versions: ProtocolVersion::names_up_to(max), server }
    }

    /// Whose dress it is.
    pub fn era(&self) -> Era {
        self.era
    }

    fn meta(&self, meta: &mut Option<MetaObject>) {
        if self.era == Era::Modern {
            let meta = meta.get_or_insert_default();
            meta.0.insert(SERVER_INFO.to_owned(), self.server.clone());
        }
    }

    fn result_type(&self) -> Option<ResultType> {
        (self.era == Era::Modern).then_some(ResultType::COMPLETE)
    }
}

#[derive(Serialize)]
struct Frame<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: T,
}

pub(super) fn frame(id: &RequestId, result: impl Serialize) -> Result<Encoded, Fault> {
    match serde_json::to_vec(&Frame { jsonrpc: "2.0", id, result }) {
        Ok(bytes) => Ok(Encoded::Whole(bytes.into())),
        Err(error) => {
            tracing::error!(%error, "a result does not serialize");
            Err(Fault::Internal("The result could not be written as JSON.".into()))
        }
    }
}

macro_rules! list {
    ($dress:expr, $id:expr, $result:expr, $hint:expr) => {{
        let (mut result, hint, dress) = ($result, $hint, $dress);
        result.result_type = dress.result_type();
        dress.meta(&mut result.meta);
        let modern = dress.era == Era::Modern;
        result.ttl_ms = modern.then_some(hint.ttl_ms);
        result.cache_scope = modern.then_some(hint.scope);
        frame($id, result)
    }};
}

/// The response to a request.
///
/// # Errors
/// When the reply's content cannot be read; nothing has been sent then.
pub async fn success(id: &RequestId, reply: Reply, dress: &Dress) -> Result<Encoded, Fault> {
    match reply {
        Reply::Empty => {
            let mut meta = None;
            dress.meta(&mut meta);
            let mut result = json!({});
            if let (Some(result_type), Some(meta)) = (dress.result_type(), meta) {
                result = json!({ "resultType": result_type, "_meta": meta });
            }
            frame(id, result)
        }
        Reply::Discover(mut result, hint) => {
            dress.meta(&mut result.meta);
            (result.ttl_ms, result.cache_scope) = (hint.ttl_ms, hint.scope);
            let mut result = serde_json::to_value(result)
                .map_err(|_| Fault::Internal("The result could not be written.".into()))?;
            result["supportedVersions"] = json!(dress.versions);
            if let (Era::Legacy, Some(members)) = (dress.era, result.as_object_mut()) {
                for modern in ["resultType", "ttlMs", "cacheScope"] {
                    members.remove(modern);
                }
                members.insert("serverInfo".into(), dress.server.clone());
            }
            frame(id, result)
        }
        Reply::CallTool(mut result) => {
            result.result_type = dress.result_type();
            dress.meta(&mut result.meta);
            frame(id, result)
        }
        Reply::TaskCreated(task) => frame(id, task_result(&task, "task", dress)),
        Reply::Task(task) => frame(id, task_result(&task, "complete", dress)),
        Reply::InputRequired(required) => {
            let mut meta = None;
            dress.meta(&mut meta);
            let result = json!({
                "resultType": "input_required",
                "inputRequests": required.questions,
                "requestState": required.state,
                "_meta": meta,
            });
            frame(id, result)
        }
        Reply::GetPrompt(mut result) => {
            result.result_type = dress.result_type();
            dress.meta(&mut result.meta);
            frame(id, result)
        }
        Reply::Complete(mut result) => {
            result.result_type = dress.result_type();
            dress.meta(&mut result.meta);
            frame(id, result)
        }
        Reply::Prompts(result, hint) => list!(dress, id, result, hint),
        Reply::Tools(result, hint) => list!(dress, id, result, hint),
        Reply::Resources(result, hint) => list!(dress, id, result, hint),
        Reply::Templates(result, hint) => list!(dress, id, result, hint),
        Reply::Read(read, hint) => contents(id, read, hint, dress).await,
    }
}

/// `resources/read`, escaped or base64-encoded piece by piece: the content is
/// never in memory as a whole unless it fits into two pieces.
async fn contents(
    id: &RequestId,
    read: ReadReply,
    hint: CacheHint,
    dress: &Dress,
) -> Result<Encoded, Fault> {
    let ReadReply { uri, mime_type, kind, mut pieces } = read;
    let member = match kind {
        Kind::Text => "text",
        Kind::Binary => "blob",
    };
    let mut result = String::new();
    if dress.era == Era::Modern {
        let mut meta = None;
        dress.meta(&mut meta);
        result = format!(
            r#""resultType":"complete","ttlMs":{},"cacheScope":{},"_meta":{},"#,
            hint.ttl_ms,
            json!(hint.scope),
            json!(meta)
        );
    }
    // The content stands in the middle of the message, so it is written by hand around it.
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{{result}"contents":[{{"uri":{},"mimeType":{},"{member}":""#,
        json!(id),
        json!(uri),
        json!(mime_type)
    );
    let tail = r#""}]}}"#;

    let unreadable = |error: io::Error| {
        tracing::error!(%error, uri, "a resource could not be read");
        Fault::Unavailable(format!("Reading {uri} failed; try again shortly."))
    };
    let mut writer = PieceWriter { kind, carry: Vec::new() };
    let mut buffer = head.into_bytes();
    for _ in 0..2 {
        match pieces.next().await {
            Some(piece) => {
                let piece = piece.map_err(unreadable)?;
                writer.write(&piece, &mut buffer).map_err(unreadable)?;
            }
            None => {
                writer.finish(&mut buffer).map_err(unreadable)?;
                buffer.extend_from_slice(tail.as_bytes());
                return Ok(Encoded::Whole(buffer.into()));
            }
        }
    }
    let begin = stream::iter([Ok(Bytes::from(buffer))]);
    let rest = stream::unfold(Some((pieces, writer)), move |state| async move {
        let (mut pieces, mut writer) = state?;
        let mut buffer = Vec::new();
        let written = match pieces.next().await {
            Some(piece) => piece.and_then(|piece| {
                buffer.reserve(piece.len() + piece.len() / 2);
                writer.write(&piece, &mut buffer)
            }),
            None => {
                let written = writer.finish(&mut buffer);
                buffer.extend_from_slice(tail.as_bytes());
                return Some((written.map(|()| buffer.into()), None));
            }
        };
        match written {
            Ok(()) => Some((Ok(buffer.into()), Some((pieces, writer)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(Encoded::Pieces(begin.chain(rest).boxed()))
}

/// Writes content into a JSON string, wherever its pieces are cut.
struct PieceWriter {
    kind: Kind,
    /// The end of a piece that makes no whole character, or no whole base64 group.
    carry: Vec<u8>,
}

impl PieceWriter {
    fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let joined;
        let piece = if self.carry.is_empty() {
            piece
        } else {
            joined = [&std::mem::take(&mut self.carry), piece].concat();
            &joined
        };
        let whole = match self.kind {
            Kind::Binary => piece.len() - piece.len() % 3,
            Kind::Text => match std::str::from_utf8(piece) {
                Ok(_) => piece.len(),
                Err(e) if e.error_len().is_none() => e.valid_up_to(),
                Err(_) => return Err(io::Error::other("text that is not UTF-8")),
            },
        };
        self.carry.extend_from_slice(&piece[whole..]);
        self.emit(&piece[..whole], out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let rest = std::mem::take(&mut self.carry);
        self.emit(&rest, out)
    }

    fn emit(&self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self.kind {
            Kind::Binary => out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes()),
            Kind::Text => {
                let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
                let quote = out.len();
                serde_json::to_writer(&mut *out, text)?;
                // The quotes stand around the whole content, not around each piece.
                out.remove(quote);
                out.pop();
            }
        }
        Ok(())
    }
}

fn task_result(task: &TaskView, result_type: &str, dress: &Dress) -> Value {
    let mut meta = None;
    dress.meta(&mut meta);
    let mut result = task.to_json(|fault| error(fault, dress.era));
    result["resultType"] = json!(result_type);
    result["_meta"] = json!(meta);
    result
}

/// The error response to a request, or to what could not be read as one.
pub fn failure(id: Option<&RequestId>, fault: &Fault, era: Era) -> Bytes {
    let mut message = json!({ "jsonrpc": "2.0", "error": error(fault, era) });
    // JSON-RPC 2.0 has a null id where none could be read; MCP leaves it out.
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    message.to_string().into()
}

fn error(fault: &Fault, era: Era) -> Value {
    let mut error = json!({ "code": code(fault, era), "message": fault.to_string() });
    match fault {
        Fault::InvalidParams { data: Some(data), .. } => error["data"] = data.clone(),
        Fault::ResourceNotFound { uri, .. } => error["data"] = json!({ "uri": uri }),
        Fault::InsufficientScope { required } => {
            error["data"] = json!({ "requiredScopes": required });
        }
        Fault::MissingCapability { required } => {
            error["data"] = json!({ "requiredCapabilities": required });
        }
        Fault::UnsupportedVersion { requested, supported } => {
            error["data"] = json!({ "supported": supported, "requested": requested });
        }
        _ => {}
    }
    error
}

/// The error code (2026-07-28, basic: Error Codes).
pub fn code(fault: &Fault, era: Era) -> i32 {
    match fault {
        Fault::Parse(_) => -32700,
        Fault::InvalidRequest(_)
        | Fault::SessionNotFound
        | Fault::StreamNotFound(_)
        | Fault::InsufficientScope { .. }
        | Fault::Limited { .. }
        | Fault::TooMany(_) => -32600,
        Fault::MethodNotFound(_) => -32601,
        Fault::ResourceNotFound { .. } if era == Era::Legacy => -32002,
        Fault::ResourceNotFound { .. } | Fault::InvalidParams { .. } | Fault::MissingMeta(_) => {
            -32602
        }
        Fault::Internal(_) | Fault::Unavailable(_) | Fault::SessionsUnavailable(_) => -32603,
        Fault::HeaderMismatch(_) => -32020,
        Fault::MissingCapability { .. } => -32021,
        Fault::UnsupportedVersion { .. } => -32022,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(kind: Kind, pieces: Vec<Vec<u8>>) -> ReadReply {
        let pieces = stream::iter(pieces.into_iter().map(|p| Ok(p.into()))).boxed();
        ReadReply { uri: "a:\"b".into(), mime_type: "text/plain".into(), kind, pieces }
    }

    async fn encoded(era: Era, reply: ReadReply) -> Value {
        let info = rmcp::model::Implementation::new("s", "1");
        let dress = Dress::new(era, &info, ProtocolVersion::LATEST);
        let reply = Reply::Read(reply, CacheHint::OWN);
        let encoded = success(&RequestId::Number(1), reply, &dress).await.unwrap();
        serde_json::from_slice(&encoded.whole().await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn content_is_whole_wherever_its_pieces_are_cut() {
        let text = "a\"\\\n\u{1}ä€😀";
        for size in 1..=text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let message = encoded(Era::Legacy, read(Kind::Text, pieces.clone())).await;
            assert_eq!(message["result"]["contents"][0]["text"], text);
            let message = encoded(Era::Modern, read(Kind::Binary, pieces)).await;
            let blob = message["result"]["contents"][0]["blob"].as_str().unwrap();
            assert_eq!(BASE64_STANDARD.decode(blob).unwrap(), text.as_bytes());
            assert_eq!(message["result"]["resultType"], "complete");
        }
        let message = encoded(Era::Legacy, read(Kind::Text, vec![])).await;
        assert_eq!(
            message["result"],
            json!({ "contents": [{ "uri": "a:\"b", "mimeType": "text/plain", "text": "" }] })
        );
    }

    #[tokio::test]
    async fn a_failure_midway_never_looks_whole() {
        let mut reply = read(Kind::Text, vec![]);
        let piece = || Ok(Bytes::from_static(b"x"));
        reply.pieces = stream::iter([piece(), piece(), Err(io::Error::other("gone"))]).boxed();
        let dress = Dress::new(
            Era::Legacy,
            &rmcp::model::Implementation::new("s", "1"),
            ProtocolVersion::LATEST,
        );
        let encoded =
            success(&RequestId::Number(1), Reply::Read(reply, CacheHint::OWN), &dress).await;
        assert!(encoded.unwrap().whole().await.is_err());
    }
}
