//! Responses of a server over HTTP.

use std::error::Error;

use futures_util::StreamExt;
use larder_protocol::quote::shortened;
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

use crate::message::{Arrived, Assembly, ByteOrderMark, MessageRefusal};

/// The media type of a stream of events.
const STREAM: &str = "text/event-stream";

/// Whether the body is a stream of events.
pub(super) fn is_stream(response: &Response) -> bool {
    response.status().is_success() && is_labelled_stream(response)
}

/// Whether the response says that its body is a stream of events, whatever its status.
pub(super) fn is_labelled_stream(response: &Response) -> bool {
    media_type(response).as_deref() == Some(STREAM)
}

/// The encoding of the body, for which Larder never asks. `None` if it comes as it is.
pub(super) fn encoding(response: &Response) -> Option<String> {
    let encodings = response.headers().get_all(CONTENT_ENCODING).into_iter();
    let names: Vec<_> = encodings.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let names = names.join(", ");
    let is_identity = |name: &str| name.is_empty() || name.eq_ignore_ascii_case("identity");
    let is_encoded = !names.split(',').map(str::trim).all(is_identity);
    is_encoded.then(|| shortened(&names).into_owned())
}

/// Whether an endpoint of the protocol may have answered so: with JSON, with a stream of events, or
/// that it has accepted a message.
pub(super) fn may_be_endpoint(response: &Response) -> bool {
    let is_accepted = response.status() == StatusCode::ACCEPTED;
    match media_type(response).as_deref() {
        Some("application/json" | STREAM) => response.status().is_success(),
        None => is_accepted,
        Some(_) => is_accepted && response.content_length() == Some(0),
    }
}

/// The media type of the body, without its parameters, in lower case.
fn media_type(response: &Response) -> Option<String> {
    let media_type = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = media_type.split([';', ',']).next()?;
    Some(essence.trim().to_ascii_lowercase())
}

/// Why a body was not read as a message.
pub(super) enum Unreceived {
    /// The message is over a limit.
    Refused(MessageRefusal),
    /// The connection was lost, for this reason.
    Lost(String),
}

/// Reads the body into the message.
pub(super) async fn read_body(
    response: Response,
    mut message: Assembly<'_>,
) -> Result<Arrived, Unreceived> {
    let mut chunks = response.bytes_stream();
    let mut mark = ByteOrderMark::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = mark.remove(chunk.map_err(|error| Unreceived::Lost(describe(&error)))?);
        message.push(&chunk).await.map_err(Unreceived::Refused)?;
    }
    Ok(message.finish())
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
