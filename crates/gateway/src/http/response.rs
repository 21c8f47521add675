//! Responses of a server over HTTP.

use std::error::Error;

use futures_util::StreamExt;
use larder_protocol::quote::{bounded, shortened};
use reqwest::{
    Response,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

use crate::{
    error::{StatusError, UpstreamError},
    link::Link,
    message::{Arrived, Assembly, ByteOrderMark, Refusal},
    received::{MESSAGE_CHARS, without_id},
};

/// The most bytes of an error's body.
const ERROR_BYTES: usize = 64 << 10;

/// Whether the body is a stream of events.
pub(super) fn is_stream(response: &Response) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|value| value.split([';', ',']).next());
    response.status().is_success()
        && essence.is_some_and(|name| name.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Reads the body into the message.
pub(super) async fn read_body(
    response: Response,
    mut message: Assembly<'_>,
) -> Result<Result<Arrived, Refusal>, String> {
    let mut chunks = response.bytes_stream();
    let mut mark = ByteOrderMark::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = mark.remove(chunk.map_err(|error| describe(&error))?);
        if let Err(why) = message.push(&chunk).await {
            return Ok(Err(why));
        }
    }
    Ok(Ok(message.finish()))
}

/// The error of a response with a status that is no success. An error of JSON-RPC in its body keeps
/// its meaning, also without an id, as of a request that the server has not read.
pub(super) async fn refusal(link: &Link, response: Response) -> UpstreamError {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after =
        retry_after.map(|value| shortened(&String::from_utf8_lossy(value.as_bytes())).into_owned());

    let body = beginning(response).await;
    if let Some(mut error) = without_id(&body) {
        let retry = retry_after.map(|after| format!(", Retry-After: {after}"));
        error.message.push_str(&format!(" (HTTP {status}{})", retry.unwrap_or_default()));
        return UpstreamError::Refused(error);
    }

    let body = bounded(String::from_utf8_lossy(&body).trim(), MESSAGE_CHARS).into_owned();
    UpstreamError::Status(Box::new(StatusError {
        name: link.name().into(),
        status,
        retry_after,
        body,
    }))
}

/// The first bytes of a body.
async fn beginning(response: Response) -> Vec<u8> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = ERROR_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == ERROR_BYTES {
            break;
        }
    }
    body
}

/// The innermost cause, without the URL, which may have secrets.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut described = "the request failed".to_owned();
    let mut cause = error.source();
    while let Some(inner) = cause {
        described = inner.to_string();
        cause = inner.source();
    }
    described
}
