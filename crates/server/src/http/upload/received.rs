//! The body of an upload, with limits on its size and on the time that its sender takes.

use std::{io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, Stream, stream};
use http::StatusCode;
use http_body_util::BodyExt;
use larder_store::store::StoreError;
use tokio::time::Instant;

use crate::http::{BodyLimits, problem::Problem};

/// Why a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyProblem {
    #[error("The content is larger than the limit of {0} bytes (content.upload_bytes).")]
    TooLarge(u64),
    #[error("The content arrived too slowly (limits.body_rate, limits.body_timeout).")]
    TooSlow,
    #[error("The content is incomplete.")]
    Incomplete,
}

impl From<BodyProblem> for Problem {
    fn from(problem: BodyProblem) -> Self {
        let status = match problem {
            BodyProblem::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyProblem::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyProblem::Incomplete => StatusCode::BAD_REQUEST,
        };
        Self::new(status, problem.to_string())
    }
}

/// The problem of content that was not stored, which may be that of its body.
pub(super) fn not_stored(error: StoreError) -> Problem {
    match &error {
        StoreError::Input(input) => {
            let cause = input.get_ref();
            if let Some(problem) = cause.and_then(|cause| cause.downcast_ref::<BodyProblem>()) {
                return (*problem).into();
            }

            match cause.and_then(|cause| cause.downcast_ref::<Problem>()) {
                Some(problem) => problem.clone(),
                None => error.into(),
            }
        }
        _ => error.into(),
    }
}

/// The time that a sender may take for the next part of a body: `step` bytes in `timeout`. Only
/// the time in which the server waits for the sender counts, not that in which it stores.
struct Patience {
    timeout: Duration,
    step: u64,

    /// How long the server has waited since the last step.
    waited: Duration,
    /// The bytes since then.
    received: u64,
}

impl Patience {
    fn new(limits: &BodyLimits) -> Self {
        Self {
            timeout: limits.timeout,
            step: limits.step().max(1),
            waited: Duration::ZERO,
            received: 0,
        }
    }

    async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, BodyProblem> {
        let started = Instant::now();
        let left = self.timeout.saturating_sub(self.waited);
        let next = tokio::time::timeout(left, next).await.map_err(|_| BodyProblem::TooSlow)?;
        self.waited += started.elapsed();
        Ok(next)
    }

    fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        if self.received >= self.step {
            (self.received, self.waited) = (0, Duration::ZERO);
        }
    }
}

/// A body while it is received.
pub(super) struct Received {
    body: Body,
    patience: Patience,
    max: u64,
    /// How many bytes have arrived.
    bytes: u64,
}

impl Received {
    /// A body of at most `max` bytes.
    pub(super) fn new(body: Body, max: u64, limits: &BodyLimits) -> Self {
        Self { body, patience: Patience::new(limits), max, bytes: 0 }
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyProblem> {
        loop {
            let frame = match self.body.frame().now_or_never() {
                // Data that has already arrived needs no timeout.
                Some(frame) => frame,
                None => self.patience.wait(self.body.frame()).await?,
            };

            let Some(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.map_err(|_| BodyProblem::Incomplete)?.into_data() else {
                continue;
            };

            self.bytes += data.len() as u64;
            if self.bytes > self.max {
                return Err(BodyProblem::TooLarge(self.max));
            }

            self.patience.received(data.len());
            return Ok(Some(data));
        }
    }

    /// The body as content to store.
    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::try_unfold(self, |mut this| async move {
            let next = this.next().await.map_err(io::Error::other)?;
            Ok(next.map(|piece| (piece, this)))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::StreamExt;

    use super::*;

    fn limits() -> BodyLimits {
        BodyLimits { timeout: Duration::from_secs(10), rate: 100, ..BodyLimits::default() }
    }

    /// A body of these pieces, each after a pause.
    fn body(pieces: &'static [(u64, usize)]) -> Body {
        Body::from_stream(stream::iter(pieces).then(|(seconds, bytes)| async move {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
            Ok::<_, io::Error>(Bytes::from(vec![0; *bytes]))
        }))
    }

    async fn receive(pieces: &'static [(u64, usize)], max: u64) -> Result<u64, BodyProblem> {
        let mut received = Received::new(body(pieces), max, &limits());
        while received.next().await?.is_some() {}
        Ok(received.bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_has_to_keep_the_rate_and_the_size() {
        assert_eq!(receive(&[(9, 1000), (9, 1000), (9, 1)], 2001).await, Ok(2001));
        assert_eq!(receive(&[(0, 1000), (0, 1001)], 2000).await, Err(BodyProblem::TooLarge(2000)));

        // Single bytes do not extend the time.
        assert_eq!(receive(&[(4, 1), (4, 1), (4, 1)], 9).await, Err(BodyProblem::TooSlow));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_the_server_takes_does_not_count() {
        let mut received = Received::new(body(&[(6, 1), (3, 1)]), 9, &limits());
        assert!(received.next().await.unwrap().is_some());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(received.next().await.unwrap().is_some());
    }
}
