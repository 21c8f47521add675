//! [`RefusedRequest`]: a response with a status of HTTP that is no success.

use bytes::Bytes;
use futures_util::StreamExt;
use larder_protocol::quote::{bounded, shortened};
use reqwest::{
    Response, StatusCode,
    header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};

use super::response::{encoding, is_labelled_stream};
use crate::{
    error::{StatusError, UpstreamError},
    link::Link,
    received::{AnswerTo, MESSAGE_CHARS, Received, read, without_id},
};

/// The most bytes of an error's body.
const ERROR_BYTES: usize = 64 << 10;
/// The most bytes of a message that is looked at for an error about a session.
const SESSION_ERROR_BYTES: usize = 4 << 10;
/// The code with which the SDKs of MCP answer in a session that they do not know.
const SESSION_NOT_FOUND: i64 = -32001;

/// A response with a status that is no success, and the beginning of its body.
pub(super) struct RefusedRequest {
    pub(super) status: StatusCode,
    /// Whether it names a way to authenticate.
    pub(super) has_challenge: bool,
    retry_after: Option<String>,
    body: Bytes,
}

impl RefusedRequest {
    pub(super) async fn read(response: Response) -> Self {
        let text = |value: &HeaderValue| {
            shortened(&String::from_utf8_lossy(value.as_bytes())).into_owned()
        };
        Self {
            status: response.status(),
            has_challenge: response.headers().contains_key(WWW_AUTHENTICATE),
            retry_after: response.headers().get(RETRY_AFTER).map(text),
            body: beginning(response).await,
        }
    }

    /// Whether the body is a message that answers this request.
    pub(super) fn answers(&self, request: Option<i64>) -> bool {
        let read = read(&self.body, |_| None);
        matches!(read, Received::Answer(AnswerTo::Request(id), _) if Some(id) == request)
    }

    /// Whether the server may mean that it does not know the session.
    pub(super) fn may_be_about_session(&self) -> bool {
        match without_id(&self.body) {
            Some(_) => is_session_error(&self.body),
            None if self.status.is_success() => false,
            None => has_session(&String::from_utf8_lossy(&self.body)),
        }
    }

    /// The status and the body in a few words.
    pub(super) fn summary(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        match body.trim() {
            "" => format!("HTTP {}", self.status.as_u16()),
            body => format!("HTTP {}: {}", self.status.as_u16(), shortened(body)),
        }
    }

    /// The error of the request. An error of JSON-RPC in the body keeps its meaning, also without
    /// an id, as of a request that the server has not read.
    pub(super) fn into_error(self, link: &Link) -> UpstreamError {
        let Self { status, retry_after, body, .. } = self;
        let status = status.as_u16();

        if let Some(mut error) = without_id(&body) {
            let retry = retry_after.map(|after| format!(", Retry-After: {after}"));
            error.message.push_str(&format!(" (HTTP {status}{})", retry.unwrap_or_default()));
            return UpstreamError::Refused(error);
        }

        let body = bounded(String::from_utf8_lossy(&body).trim(), MESSAGE_CHARS).into_owned();
        let name = link.name().into();
        UpstreamError::Status(Box::new(StatusError { name, status, retry_after, body }))
    }
}

/// Whether a message is an error that may say that the server does not know the session.
pub(super) fn is_session_error(message: &[u8]) -> bool {
    if message.len() > SESSION_ERROR_BYTES {
        return false;
    }
    without_id(message)
        .is_some_and(|error| error.code == SESSION_NOT_FOUND || has_session(&error.message))
}

fn has_session(text: &str) -> bool {
    text.to_ascii_lowercase().contains("session")
}

/// The first bytes of a body; of a stream of events their data. Without the bytes of an encoding,
/// which is named instead.
async fn beginning(response: Response) -> Bytes {
    if let Some(encoding) = encoding(&response) {
        return format!("(The body has the Content-Encoding {encoding}.)").into();
    }

    let is_stream = is_labelled_stream(&response);
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = ERROR_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == ERROR_BYTES {
            break;
        }
    }

    if is_stream { data_of(&body).unwrap_or_else(|| body.into()) } else { body.into() }
}

/// The data of the events in a body. `None` without any.
fn data_of(body: &[u8]) -> Option<Bytes> {
    let text = String::from_utf8_lossy(body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<_> = data.map(|data| data.strip_prefix(' ').unwrap_or(data)).collect();
    (!data.is_empty()).then(|| data.join("\n").into())
}
