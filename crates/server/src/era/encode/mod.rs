//! Encodes replies as JSON-RPC messages, by the rules of their protocol era.

mod content;
mod encoder;
mod error;
mod escape;
mod others;

use larder_protocol::{Fault, RequestId};
use larder_runtime::held::{Held, HeldBytes};
use larder_store::task::TaskView;
use rmcp::model::{ContentBlock, DiscoverResult};
use serde_json::{Value, json, value::RawValue};

pub(super) use self::encoder::frame;
use self::{encoder::response, error::error};
pub use self::{
    encoder::{Encoded, ResponseEncoder},
    error::{encode_error, error_code},
};
use super::Era;
use crate::dispatch::{CacheHint, HeldReply, Reader, Reply, ToolReply};

macro_rules! list {
    ($encoder:expr, $id:expr, $result:expr, $hint:expr, $items:ident, $member:literal) => {{
        let mut result = $result;
        let hint = $hint;
        let encoder = $encoder;
        result.result_type = encoder.result_type();
        encoder.add_server_info(&mut result.meta);

        let modern = encoder.era == Era::Modern;
        result.ttl_ms = modern.then_some(hint.ttl_ms);
        result.cache_scope = modern.then_some(hint.scope);
        if result.$items.iter().any(|item| others::has_others(item.meta.as_ref())) {
            frame($id, others::list(&result, $member)?)
        } else {
            frame($id, result)
        }
    }};
}

/// Encodes the response to a request, which holds the memory of the reply until all of its bytes
/// are sent or dropped.
///
/// # Errors
/// The reply's content cannot be read. Nothing has been sent then.
pub async fn encode_reply(
    id: &RequestId,
    reply: impl Into<HeldReply>,
    encoder: &ResponseEncoder,
) -> Result<Encoded, Fault> {
    let HeldReply { reply, held } = reply.into();
    Ok(encode(id, reply, encoder).await?.holding(held))
}

/// Wraps structured content that is no object in one: before 2026-07-28 it is always an object.
fn wrap_structured(reply: &mut ToolReply) {
    let result = &mut reply.result;
    let Some(content) = result.structured_content.take_if(|content| !content.is_object()) else {
        return;
    };
    if content.is_null() {
        return;
    }

    let json =
        reply.exact.take().map_or_else(|| content.to_string(), |exact| exact.get().to_owned());
    if result.content.is_empty() {
        result.content.push(ContentBlock::text(json.clone()));
    }
    reply.exact = RawValue::from_string(format!("{{\"result\":{json}}}")).ok();
    result.structured_content = Some(json!({ "result": content }));
}

async fn encode(id: &RequestId, reply: Reply, encoder: &ResponseEncoder) -> Result<Encoded, Fault> {
    let message = match reply {
        Reply::Empty => {
            let mut meta = None;
            encoder.add_server_info(&mut meta);

            let mut result = json!({});
            if let (Some(result_type), Some(meta)) = (encoder.result_type(), meta) {
                result = json!({ "resultType": result_type, "_meta": meta });
            }
            frame(id, result)
        }
        Reply::Discover(result, hint) => frame(id, discovered(result, hint, encoder)?),
        Reply::CallTool(reply) => return tool_result(id, reply, encoder),
        Reply::TaskCreated(task) => frame(id, task_result(&task, "task", encoder)),
        Reply::Task(task) => frame(id, task_result(&task, "complete", encoder)),
        Reply::InputRequired(required) => {
            let mut meta = None;
            encoder.add_server_info(&mut meta);
            let result = json!({
                "resultType": "input_required",
                "inputRequests": required.input_requests,
                "requestState": required.state,
                "_meta": meta,
            });
            frame(id, result)
        }
        Reply::GetPrompt(mut result) => {
            result.result_type = encoder.result_type();
            encoder.add_server_info(&mut result.meta);
            let mut contents = result.messages.iter().map(|message| &message.content);
            if others::has_others(result.meta.as_ref()) || contents.any(others::block_has_others) {
                frame(id, others::prompt(&result)?)
            } else {
                frame(id, result)
            }
        }
        Reply::Complete(mut result) => {
            result.result_type = encoder.result_type();
            encoder.add_server_info(&mut result.meta);
            if others::has_others(result.meta.as_ref()) {
                frame(id, others::result(&result)?)
            } else {
                frame(id, result)
            }
        }
        Reply::Prompts(result, hint) => {
            list!(encoder, id, result, hint, prompts, "prompts")
        }
        Reply::Tools(result, hint) => {
            list!(encoder, id, result, hint, tools, "tools")
        }
        Reply::Resources(result, hint) => {
            list!(encoder, id, result, hint, resources, "resources")
        }
        Reply::Templates(result, hint) => {
            list!(encoder, id, result, hint, resource_templates, "resourceTemplates")
        }
        // The box keeps the futures of other replies small.
        Reply::Read(read, hint) => return Box::pin(content::read(id, read, hint, encoder)).await,
    };

    message.map(Encoded::Complete)
}

fn discovered(
    mut result: Box<DiscoverResult>,
    hint: CacheHint,
    encoder: &ResponseEncoder,
) -> Result<Value, Fault> {
    encoder.add_server_info(&mut result.meta);
    result.ttl_ms = hint.ttl_ms;
    result.cache_scope = hint.scope;

    let mut result = serde_json::to_value(result)
        .map_err(|_| Fault::Internal("The result cannot be encoded as JSON.".into()))?;
    result["supportedVersions"] = json!(encoder.versions);

    if let (Era::Legacy, Some(members)) = (encoder.era, result.as_object_mut()) {
        for modern in ["resultType", "ttlMs", "cacheScope"] {
            members.remove(modern);
        }
        members.insert("serverInfo".into(), encoder.server.clone());
    }
    Ok(result)
}

fn tool_result(
    id: &RequestId,
    mut reply: Box<ToolReply>,
    encoder: &ResponseEncoder,
) -> Result<Encoded, Fault> {
    if encoder.era == Era::Legacy {
        wrap_structured(&mut reply);
    }

    let reader = reply.reader;
    let result = &mut reply.result;
    let message = if result.meta.is_some() {
        result.result_type = encoder.result_type();
        encoder.add_server_info(&mut result.meta);
        content::tool_result(reply, |result| frame(id, result))
    } else {
        result.result_type = None;
        content::tool_result(reply, |result| response(id, result, encoder))
    };

    match reader {
        Reader::Model => message.map(|message| encoder.count_returned(message)),
        Reader::Person => message,
    }
}

fn task_result(task: &TaskView, result_type: &str, encoder: &ResponseEncoder) -> Value {
    let mut meta = None;
    encoder.add_server_info(&mut meta);

    let mut result = task.to_json(|fault| error(fault, encoder.era));
    result["resultType"] = json!(result_type);
    result["_meta"] = json!(meta);
    result
}

/// Encodes an outcome as one message. Errors become error responses.
pub async fn encode_outcome(
    id: &RequestId,
    outcome: Result<HeldReply, Fault>,
    encoder: &ResponseEncoder,
) -> HeldBytes {
    let (encoded, held) = match outcome {
        Ok(HeldReply { reply, held }) => (encode(id, reply, encoder).await, held),
        Err(fault) => (Err(fault), Held::default()),
    };

    let message = match encoded {
        Ok(encoded) => encoded.into_bytes().await.map_err(|error| {
            tracing::error!(%error, "the content of a reply cannot be read");
            Fault::Unavailable("The content cannot be read completely. Try again shortly.".into())
        }),
        Err(fault) => Err(fault),
    };

    let message = message.unwrap_or_else(|fault| encode_error(Some(id), &fault, encoder.era()));
    HeldBytes::new(message, held)
}
