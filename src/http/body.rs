//! Request bodies are read with limits on size and time before they are parsed. Response
//! bodies are the encoded messages of an era.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use tokio::time::Instant;

use super::{Endpoint, HttpOptions, error::HttpError};
use crate::{era::Encoded, protocol::has_at_most_values};

/// The minimum average rate of a body, in bytes per second. Slower clients only hold
/// resources.
const MIN_BYTES_PER_SECOND: u32 = 16 << 10;

/// Rejects a body whose `Content-Length` is over the limit, before any other work.
pub(super) fn check_content_length(
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Result<(), HttpError> {
    let max = endpoint.options().body_bytes;
    if content_length(headers).is_some_and(|length| length > max as u64) {
        return Err(HttpError::TooLarge(max));
    }
    Ok(())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// # Errors
/// 415 for a media type that is not JSON, 413 for too many bytes or values, 408 for a slow
/// body, 400 for an incomplete body.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    options: &HttpOptions,
) -> Result<Bytes, HttpError> {
    let media = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(HttpError::MediaType(media.chars().take(80).collect()));
    }
    let max = options.body_bytes;
    let content_length = content_length(headers);
    let mut body = body;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut started = None;
    loop {
        let frame = match body.frame().now_or_never() {
            // Data that has already arrived needs no timeout.
            Some(frame) => frame,
            None => {
                let now = Instant::now();
                let received = u32::try_from(first.len() + rest.len()).unwrap_or(u32::MAX);
                let allowance = Duration::from_secs((received / MIN_BYTES_PER_SECOND).into());
                let deadline = *started.get_or_insert(now) + options.body_timeout + allowance;
                let remaining = options.body_timeout.min(deadline.saturating_duration_since(now));
                let frame = tokio::time::timeout(remaining, body.frame()).await;
                frame.map_err(|_| HttpError::TooSlow)?
            }
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| HttpError::Incomplete)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > max {
            return Err(HttpError::TooLarge(max));
        }
        // A body that arrives in one part is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                let length = content_length.and_then(|l| usize::try_from(l).ok()).unwrap_or(0);
                rest.reserve(length.max(first.len() + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    let body = if rest.is_empty() { first } else { rest.freeze() };
    if !has_at_most_values(&body, options.body_values) {
        return Err(HttpError::TooManyValues(options.body_values));
    }
    Ok(body)
}

impl From<Encoded> for Body {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Complete(bytes) => Self::from(bytes),
            Encoded::Chunks(chunks) => Self::from_stream(chunks),
        }
    }
}
