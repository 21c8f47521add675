//! Server-sent events (WHATWG HTML, 9.2). Not axum's, because large messages are streamed.

use std::{io, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, header};
use larder_oauth::Identity;
use larder_store::session::{Delivery, SessionError};
use tokio_util::sync::CancellationToken;

use crate::{admission::Permit, era::Encoded, http::Endpoint};

type Frame = io::Result<Bytes>;

/// Ends a stream of messages when the caller's credentials are no longer valid: between two
/// messages, never inside one. Other streams end with their call, which has the deadline.
pub(in crate::http) fn until_invalid<S: Stream + Send>(
    messages: S,
    identity: &Identity,
) -> impl Stream<Item = S::Item> + Send + use<S> {
    messages.take_until(identity.invalidated())
}

/// A response with a stream of events.
pub(in crate::http) fn response(
    frames: impl Stream<Item = Frame> + Send + 'static,
    endpoint: &Endpoint,
) -> Response {
    let in_flight = endpoint.dispatcher.traffic().stream();
    let frames = with_keep_alive(frames, endpoint.options().keep_alive).map(move |frame| {
        let _in_flight = &in_flight;
        frame
    });

    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));

    // nginx and similar proxies would buffer events.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

/// Holds a permit as long as the stream lives.
pub(in crate::http) fn with_permit(
    frames: impl Stream<Item = Frame> + Send,
    permit: Permit,
) -> impl Stream<Item = Frame> + Send {
    frames.map(move |frame| {
        let _permit = &permit;
        frame
    })
}

/// A message without an event ID, which cannot be resumed.
pub(in crate::http) fn message(encoded: Encoded) -> impl Stream<Item = Frame> + Send {
    let chunks = match encoded {
        Encoded::Complete(bytes) => stream::iter([Ok(bytes)]).boxed(),
        Encoded::Chunks(chunks) => chunks,
    };

    let begin = stream::iter([Ok(Bytes::from_static(b"data: "))]);
    let end = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    begin.chain(chunks).chain(end)
}

/// A resumable stream: a priming event with this ID, then the deliveries.
pub(in crate::http) fn resumable(
    prime: Option<String>,
    deliveries: impl Stream<Item = Result<Delivery, SessionError>> + Send,
    retry: Duration,
) -> impl Stream<Item = Frame> + Send {
    let prime = prime.map(|id| {
        // An ID and empty data, so that the client can resume before the first message
        // (2025-11-25, transports: Sending Messages).
        Ok(Bytes::from(format!("id: {id}\nretry: {}\ndata:\n\n", retry.as_millis())))
    });

    let frames = deliveries.flat_map(|delivery| stream::iter(encode_delivery(delivery)));
    stream::iter(prime).chain(frames)
}

/// Ends a stream when the server stops, with the time to reconnect.
pub(in crate::http) fn until_closing(
    frames: impl Stream<Item = Frame> + Send,
    closing: CancellationToken,
    retry: Duration,
) -> impl Stream<Item = Frame> + Send {
    let retry_on_close = closing.clone();
    let retry_on_close =
        stream::once(async move { retry_on_close.is_cancelled().then(|| Ok(retry_field(retry))) });
    let retry_on_close = retry_on_close.filter_map(std::future::ready);

    frames.take_until(closing.cancelled_owned()).chain(retry_on_close)
}

fn retry_field(retry: Duration) -> Bytes {
    format!("retry: {}\n\n", retry.as_millis()).into()
}

fn encode_delivery(delivery: Result<Delivery, SessionError>) -> Vec<Frame> {
    match delivery {
        Ok(Delivery::Event(event)) => vec![
            Ok(Bytes::from(format!("id: {}\ndata: ", event.id))),
            Ok(event.data),
            Ok(Bytes::from_static(b"\n\n")),
        ],
        Ok(Delivery::Disconnect { retry }) => vec![Ok(retry_field(retry))],
        // A gap must not look like the end of the stream, so the connection is aborted. The
        // next attempt of the client gets the error.
        Err(error) => vec![Err(io::Error::other(error))],
    }
}

/// Sends a comment when no event is sent for the given time, so that proxies do not close
/// the connection as idle.
fn with_keep_alive(
    frames: impl Stream<Item = Frame> + Send + 'static,
    interval: Duration,
) -> impl Stream<Item = Frame> + Send {
    // A comment is allowed only between events.
    let state = (frames.boxed(), true);

    stream::unfold(state, move |(mut frames, between_events)| async move {
        let next = if between_events {
            match tokio::time::timeout(interval, frames.next()).await {
                Ok(next) => next,
                Err(_) => return Some((Ok(Bytes::from_static(b":\n\n")), (frames, true))),
            }
        } else {
            frames.next().await
        }?;

        let between_events = next.as_ref().is_ok_and(|frame| frame.ends_with(b"\n\n"));
        Some((next, (frames, between_events)))
    })
}
