//! Request bodies are read with limits on size, time and the memory of all bodies before they
//! are parsed. Response bodies are the encoded messages of an era.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::Instant;

use crate::{
    admission::{BodyPermit, LimitReached, RequestPermit},
    era::Encoded,
    http::{
        BodyLimits, Endpoint,
        error::{HttpError, Reply},
        head::Head,
    },
};

/// Rejects a body whose `Content-Length` is over the limit, before any other work.
pub(in crate::http) fn check_content_length(endpoint: &Endpoint, head: &Head) -> Reply<()> {
    let max = endpoint.options().body.bytes;
    if head.content_length().is_some_and(|length| length > max as u64) {
        return Err(HttpError::TooLarge(max));
    }
    Ok(())
}

/// Why a body is not read.
pub(in crate::http) enum BodyError {
    Http(HttpError),
    /// There is no room for it now.
    Limited(LimitReached),
}

impl From<HttpError> for BodyError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl From<LimitReached> for BodyError {
    fn from(limited: LimitReached) -> Self {
        Self::Limited(limited)
    }
}

/// The received bytes of a body. They are counted as long as any part of them is in use.
struct CountedBody {
    bytes: Bytes,
    _permit: BodyPermit,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The time in which the next bytes of a body have to arrive. Without a minimum rate, a
/// client could hold a body for as long as it likes with single bytes.
struct BodyProgress {
    timeout: Duration,
    /// The number of bytes that extend the time.
    step: usize,
    deadline: Instant,
    /// The received bytes at which the time is extended.
    target: usize,
}

impl BodyProgress {
    fn new(received: usize, limits: &BodyLimits) -> Self {
        let timeout = limits.timeout;
        let step = usize::try_from(limits.step()).unwrap_or(usize::MAX);
        let deadline = Instant::now() + timeout;
        let target = received.saturating_add(step);
        Self { timeout, step, deadline, target }
    }

    /// The deadline for the bytes after those that were received.
    fn deadline(&mut self, received: usize) -> Instant {
        if received >= self.target {
            self.deadline = Instant::now() + self.timeout;
            self.target = received.saturating_add(self.step.max(1));
        }
        self.deadline
    }
}

/// Reads a body. Its bytes are counted until the returned value and all its parts are
/// dropped.
///
/// # Errors
/// 415 for a media type that is not JSON, 413 for too many bytes, 408 for a slow body, 400
/// for an incomplete body; a limit on the bytes of all bodies.
pub(in crate::http) async fn read(
    head: &Head,
    body: Body,
    limits: &BodyLimits,
    permit: &RequestPermit,
) -> Result<Bytes, BodyError> {
    check_media_type(head)?;

    let max = limits.bytes;
    // The announced length, if there is one.
    let length = body.size_hint().exact().and_then(|l| usize::try_from(l).ok()).unwrap_or(0);
    let mut permit = permit.body(length)?;

    let mut body = body;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut progress = None;

    loop {
        let frame = match body.frame().now_or_never() {
            // Data that has already arrived needs no timeout.
            Some(frame) => frame,
            None => {
                let received = first.len() + rest.len();
                let progress = progress.get_or_insert_with(|| BodyProgress::new(received, limits));
                let frame = tokio::time::timeout_at(progress.deadline(received), body.frame());
                frame.await.map_err(|_| HttpError::TooSlow)?
            }
        };

        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| HttpError::Incomplete)?.into_data() else { continue };

        if first.len() + rest.len() + data.len() > max {
            return Err(HttpError::TooLarge(max).into());
        }
        permit.grow(data.len())?;

        // A body that arrives in one part is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(length.max(first.len() + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }

    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    Ok(Bytes::from_owner(CountedBody { bytes, _permit: permit }))
}

fn check_media_type(head: &Head) -> Reply<()> {
    let media = head.media_type();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(HttpError::MediaType(media.chars().take(80).collect()));
    }
    Ok(())
}

impl From<Encoded> for Body {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Complete(bytes) => Self::from(bytes),
            Encoded::Chunks(chunks) => Self::from_stream(chunks),
        }
    }
}
