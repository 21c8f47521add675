//! The contents of a resource that an upstream has read.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::Value;

use super::{error::UpstreamError, names::Naming};
use crate::{
    handler::{Contents, ReadContent},
    store::Content,
};

/// The contents in a result of `resources/read`.
pub(super) fn of_result(mut result: Value, naming: &Naming) -> Result<Contents, UpstreamError> {
    let contents = result["contents"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut contents = contents.into_iter().map(|mut content| {
        naming.offer_member(&mut content, "uri");
        parse(&mut content, naming)
    });
    let first = contents.next();
    let first = first.ok_or_else(|| invalid(naming, "a resource must have a content"))??;
    Ok(Contents { first, further: contents.collect::<Result<_, _>>()? })
}

fn parse(content: &mut Value, naming: &Naming) -> Result<ReadContent, UpstreamError> {
    let parsed = match (content["text"].take(), content["blob"].take()) {
        (Value::String(text), _) => Content::from(text),
        (_, Value::String(blob)) => {
            let bytes = BASE64_STANDARD.decode(blob.trim_ascii());
            let bytes = bytes.map_err(|_| invalid(naming, "its blob is not base64"))?;
            Content::from(Bytes::from(bytes))
        }
        _ => return Err(invalid(naming, "a content must have text or a blob")),
    };
    let text = |member: &Value| member.as_str().map(str::to_owned);
    Ok(ReadContent {
        uri: text(&content["uri"]),
        mime_type: text(&content["mimeType"]),
        meta: content["_meta"].as_object_mut().map(std::mem::take),
        content: parsed,
    })
}

fn invalid(naming: &Naming, problem: &str) -> UpstreamError {
    let (name, problem) = (naming.upstream.as_str().into(), problem.to_owned());
    UpstreamError::Invalid { name, problem }
}
