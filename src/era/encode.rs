//! Replies as JSON-RPC messages, each era in its own dress.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use rmcp::model::{MetaObject, ResultType};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Era, content};
use crate::{
    dispatch::{CacheHint, Reply},
    protocol::{Fault, ProtocolVersion, RequestId, SERVER_INFO},
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
pub struct ResponseEncoder {
    era: Era,
    versions: Vec<&'static str>,
    server: Value,
    /// What stands in a complete result that has no metadata of its own, as
    /// JSON: written once, because it is the same in every one.
    complete: Arc<str>,
}

impl ResponseEncoder {
    /// For replies of that era, from a server of that name that speaks
    /// versions up to `max`.
    pub fn new(era: Era, server: &rmcp::model::Implementation, max: ProtocolVersion) -> Self {
        // A struct of strings always serializes.
        let server = serde_json::to_value(server).unwrap_or_default();
        let complete = match era {
            Era::Legacy => String::new(),
            Era::Modern => {
                let meta = json!({ SERVER_INFO: server });
                format!(r#""resultType":"complete","_meta":{meta}"#)
            }
        };
        let versions = ProtocolVersion::names_up_to(max);
        Self { era, versions, server, complete: complete.into() }
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

    /// What stands in a result before its own members, each with a comma.
    pub(super) fn members(&self, hint: CacheHint) -> String {
        if self.era != Era::Modern {
            return String::new();
        }
        let (ttl, scope) = (hint.ttl_ms, json!(hint.scope));
        format!(r#"{},"ttlMs":{ttl},"cacheScope":{scope},"#, self.complete)
    }

    fn result_type(&self) -> Option<ResultType> {
        (self.era == Era::Modern).then_some(ResultType::COMPLETE)
    }
}

/// A response whose result is an object with neither a type nor metadata yet.
pub(super) fn dressed(
    id: &RequestId,
    result: &impl Serialize,
    encoder: &ResponseEncoder,
) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(SMALL);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    write_json(&mut json, id)?;
    json.extend_from_slice(br#","result":"#);
    if encoder.complete.is_empty() {
        write_json(&mut json, result)?;
    } else {
        json.push(b'{');
        json.extend_from_slice(encoder.complete.as_bytes());
        let opening = json.len();
        write_json(&mut json, result)?;
        // Its own members go on where it would begin.
        match json.get(opening + 1) {
            Some(b'}') => drop(json.remove(opening)),
            _ => json[opening] = b',',
        }
    }
    json.push(b'}');
    Ok(json.into())
}

#[derive(Serialize)]
struct Frame<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: T,
}

/// What most responses fit in.
const SMALL: usize = 512;

pub(super) fn frame(id: &RequestId, result: impl Serialize) -> Result<Bytes, Fault> {
    json_of(&Frame { jsonrpc: "2.0", id, result })
}

pub(super) fn json_of(value: &impl Serialize) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(SMALL);
    write_json(&mut json, value)?;
    Ok(json.into())
}

fn write_json(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(json, value).map_err(|error| {
        tracing::error!(%error, "a result does not serialize");
        Fault::Internal("The result could not be written as JSON.".into())
    })
}

macro_rules! list {
    ($encoder:expr, $id:expr, $result:expr, $hint:expr) => {{
        let (mut result, hint, encoder) = ($result, $hint, $encoder);
        result.result_type = encoder.result_type();
        encoder.meta(&mut result.meta);
        let modern = encoder.era == Era::Modern;
        result.ttl_ms = modern.then_some(hint.ttl_ms);
        result.cache_scope = modern.then_some(hint.scope);
        frame($id, result)
    }};
}

/// The response to a request.
///
/// # Errors
/// When the reply's content cannot be read; nothing has been sent then.
pub async fn success(
    id: &RequestId,
    reply: Reply,
    encoder: &ResponseEncoder,
) -> Result<Encoded, Fault> {
    let whole = match reply {
        Reply::Empty => {
            let mut meta = None;
            encoder.meta(&mut meta);
            let mut result = json!({});
            if let (Some(result_type), Some(meta)) = (encoder.result_type(), meta) {
                result = json!({ "resultType": result_type, "_meta": meta });
            }
            frame(id, result)
        }
        Reply::Discover(mut result, hint) => {
            encoder.meta(&mut result.meta);
            (result.ttl_ms, result.cache_scope) = (hint.ttl_ms, hint.scope);
            let mut result = serde_json::to_value(result)
                .map_err(|_| Fault::Internal("The result could not be written.".into()))?;
            result["supportedVersions"] = json!(encoder.versions);
            if let (Era::Legacy, Some(members)) = (encoder.era, result.as_object_mut()) {
                for modern in ["resultType", "ttlMs", "cacheScope"] {
                    members.remove(modern);
                }
                members.insert("serverInfo".into(), encoder.server.clone());
            }
            frame(id, result)
        }
        Reply::CallTool(mut result) => {
            if result.meta.is_some() {
                result.result_type = encoder.result_type();
                encoder.meta(&mut result.meta);
                return content::tool_result(result, |result| frame(id, result));
            }
            result.result_type = None;
            return content::tool_result(result, |result| dressed(id, result, encoder));
        }
        Reply::TaskCreated(task) => frame(id, task_result(&task, "task", encoder)),
        Reply::Task(task) => frame(id, task_result(&task, "complete", encoder)),
        Reply::InputRequired(required) => {
            let mut meta = None;
            encoder.meta(&mut meta);
            let result = json!({
                "resultType": "input_required",
                "inputRequests": required.questions,
                "requestState": required.state,
                "_meta": meta,
            });
            frame(id, result)
        }
        Reply::GetPrompt(mut result) => {
            result.result_type = encoder.result_type();
            encoder.meta(&mut result.meta);
            frame(id, result)
        }
        Reply::Complete(mut result) => {
            result.result_type = encoder.result_type();
            encoder.meta(&mut result.meta);
            frame(id, result)
        }
        Reply::Prompts(result, hint) => list!(encoder, id, result, hint),
        Reply::Tools(result, hint) => list!(encoder, id, result, hint),
        Reply::Resources(result, hint) => list!(encoder, id, result, hint),
        Reply::Templates(result, hint) => list!(encoder, id, result, hint),
        // By itself on the heap: other replies need no room for it.
        Reply::Read(read, hint) => return Box::pin(content::read(id, read, hint, encoder)).await,
    };
    whole.map(Encoded::Whole)
}

fn task_result(task: &TaskView, result_type: &str, encoder: &ResponseEncoder) -> Value {
    let mut meta = None;
    encoder.meta(&mut meta);
    let mut result = task.to_json(|fault| error(fault, encoder.era));
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
