//! Bodies: a request's is read, bounded in size and in time, before anything
//! looks at it; a response's is a message as the era encoded it.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use tokio::time::Instant;

use super::{Endpoint, HttpOptions, error::HttpError};
use crate::{era::Encoded, protocol::has_values_within};

/// Bytes in a second. Whoever sends less in the long run wants to keep us
/// waiting, and not to be answered.
const SLOWEST: u32 = 16 << 10;

/// Refuses a body that says it is too large, before anything else is done for it.
pub(super) fn check_size(endpoint: &Endpoint, headers: &HeaderMap) -> Result<(), HttpError> {
    let most = endpoint.options().body_bytes;
    if announced(headers).is_some_and(|length| length > most as u64) {
        return Err(HttpError::TooLarge(most));
    }
    Ok(())
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// # Errors
/// 415 for a media type that is not JSON, 413 for too much or too many values, 408 for too slow,
/// 400 for a body that breaks off.
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
    let most = options.body_bytes;
    let announced = announced(headers);
    let mut body = body;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut begun = None;
    loop {
        let frame = match body.frame().now_or_never() {
            // What has come already needs no clock.
            Some(frame) => frame,
            None => {
                let now = Instant::now();
                let received = u32::try_from(first.len() + rest.len()).unwrap_or(u32::MAX);
                let earned = Duration::from_secs((received / SLOWEST).into());
                let latest = *begun.get_or_insert(now) + options.body_timeout + earned;
                let patience = options.body_timeout.min(latest.saturating_duration_since(now));
                let frame = tokio::time::timeout(patience, body.frame()).await;
                frame.map_err(|_| HttpError::TooSlow)?
            }
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| HttpError::BrokenOff)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > most {
            return Err(HttpError::TooLarge(most));
        }
        // A body that comes in one piece is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                let length = announced.and_then(|l| usize::try_from(l).ok()).unwrap_or(0);
                rest.reserve(length.max(first.len() + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    let body = if rest.is_empty() { first } else { rest.freeze() };
    if !has_values_within(&body, options.body_values) {
        return Err(HttpError::TooManyValues(options.body_values));
    }
    Ok(body)
}

impl From<Encoded> for Body {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Whole(bytes) => Self::from(bytes),
            Encoded::Pieces(pieces) => Self::from_stream(pieces),
        }
    }
}
