//! The body of a response as a connection sends it.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{activity::RequestInProgress, stall};

/// The size of the parts in which a stream of HTTP/2 takes data. Hyper buffers a whole part,
/// however small the client's window is.
const PART_BYTES: usize = 16 << 10;

/// A response body. The request is in progress until it is dropped.
pub(super) struct ResponseBody {
    body: Body,
    /// The rest of a frame that was sent in part. Empty in HTTP/1, which needs no parts.
    rest: Bytes,
    is_http2: bool,
    _request: RequestInProgress,
}

impl ResponseBody {
    pub(super) fn new(body: Body, is_http2: bool, request: RequestInProgress) -> Self {
        Self { body, rest: Bytes::new(), is_http2, _request: request }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.is_http2 {
            return Pin::new(&mut self.body).poll_frame(cx);
        }

        stall::is_taken();
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }

        stall::has_data();
        let part = self.rest.len().min(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.size_hint();
        let rest = self.rest.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper().and_then(|upper| upper.checked_add(rest)) {
            hint.set_upper(upper);
        }
        hint
    }
}
