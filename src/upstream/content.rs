//! The content of a resource that an upstream has read.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::Value;

use super::error::UpstreamError;
use crate::{handler::StaticContent, store::Content};

/// The content in a result of `resources/read`.
pub(super) fn of_result(mut result: Value, upstream: &str) -> Result<StaticContent, UpstreamError> {
    let invalid = |problem: &str| UpstreamError::Invalid {
        name: upstream.into(),
        problem: problem.to_owned(),
    };
    let contents = result["contents"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let Ok([mut content]) = <[Value; 1]>::try_from(contents) else {
        return Err(invalid("a resource must have one content"));
    };
    let mime_type = content["mimeType"].as_str().map(str::to_owned);
    let content = match (content["text"].take(), content["blob"].take()) {
        (Value::String(text), _) => Content::from(text),
        (_, Value::String(blob)) => {
            let bytes = BASE64_STANDARD.decode(blob.trim_ascii());
            Content::from(Bytes::from(bytes.map_err(|_| invalid("its blob is not base64"))?))
        }
        _ => return Err(invalid("a content must have text or a blob")),
    };
    Ok((content, mime_type))
}
