//! Server-sent events (WHATWG HTML, 9.2), written by hand because messages
//! may be large, and still be read while they are sent.

use std::{io, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, header};
use tokio_util::sync::CancellationToken;

use super::Endpoint;
use crate::{
    admission::Permit,
    auth::Identity,
    era::Encoded,
    in_flight::InFlight,
    session::{Deliveries, Delivery, EventId},
};

type Frame = io::Result<Bytes>;

/// A response whose body is a stream of events. It ends when the credentials
/// do that it was opened with; the client comes back with new ones.
pub(super) fn response(
    frames: impl Stream<Item = Frame> + Send + 'static,
    endpoint: &Endpoint,
    identity: &Identity,
) -> Response {
    let frames = match identity.expires() {
        Some(expires) => {
            let clock = Arc::clone(&endpoint.clock);
            let expired = async move { clock.sleep_until(expires).await };
            frames.take_until(Box::pin(expired)).left_stream()
        }
        None => frames.right_stream(),
    };
    let open = InFlight::new("larder_streams");
    let frames = kept_alive(frames, endpoint.options().keep_alive).map(move |frame| {
        let _counted = &open;
        frame
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    // Proxies such as nginx would hold events back to fill their buffers.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

/// Keeps a permit as long as the stream.
pub(super) fn holding(
    frames: impl Stream<Item = Frame> + Send,
    permit: Permit,
) -> impl Stream<Item = Frame> + Send {
    frames.map(move |frame| {
        let _held = &permit;
        frame
    })
}

/// InFlight message without an id: what no one can resume.
pub(super) fn message(encoded: Encoded) -> impl Stream<Item = Frame> + Send {
    let pieces = match encoded {
        Encoded::Whole(bytes) => stream::iter([Ok(bytes)]).boxed(),
        Encoded::Pieces(pieces) => pieces,
    };
    let begin = stream::iter([Ok(Bytes::from_static(b"data: "))]);
    let end = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    begin.chain(pieces).chain(end)
}

/// A stream that can be resumed: its priming event, then whatever is delivered.
pub(super) fn resumable(
    prime: Option<EventId>,
    deliveries: Deliveries,
    retry: Duration,
) -> impl Stream<Item = Frame> + Send {
    let prime = prime.map(|id| {
        // An id and empty data: the client can come back before anything was said
        // (2025-11-25, transports: Sending Messages).
        Ok(Bytes::from(format!("id: {id}\nretry: {}\ndata:\n\n", retry.as_millis())))
    });
    let frames = deliveries.flat_map(|delivery| stream::iter(frames_of(delivery)));
    stream::iter(prime).chain(frames)
}

/// Ends a stream when the server stops, and says when to come back.
pub(super) fn until_closing(
    frames: impl Stream<Item = Frame> + Send,
    closing: CancellationToken,
    retry: Duration,
) -> impl Stream<Item = Frame> + Send {
    let goodbye = closing.clone();
    let goodbye = stream::once(async move { goodbye.is_cancelled().then(|| Ok(come_back(retry))) });
    let goodbye = goodbye.filter_map(std::future::ready);
    frames.take_until(closing.cancelled_owned()).chain(goodbye)
}

fn come_back(retry: Duration) -> Bytes {
    format!("retry: {}\n\n", retry.as_millis()).into()
}

fn frames_of(delivery: Result<Delivery, crate::session::SessionError>) -> Vec<Frame> {
    match delivery {
        Ok(Delivery::Event(event)) => vec![
            Ok(Bytes::from(format!("id: {}\ndata: ", event.id))),
            Ok(event.data),
            Ok(Bytes::from_static(b"\n\n")),
        ],
        Ok(Delivery::Disconnect { retry }) => vec![Ok(come_back(retry))],
        // A gap must not look like the end: break the connection off. The
        // client's next attempt is told what happened.
        Err(error) => vec![Err(io::Error::other(error))],
    }
}

/// Puts a comment between events when they are rare, so that nobody on the
/// way takes the connection for dead.
fn kept_alive(
    frames: impl Stream<Item = Frame> + Send + 'static,
    every: Duration,
) -> impl Stream<Item = Frame> + Send {
    // A comment may stand only between events, never within one.
    let state = (frames.boxed(), true);
    stream::unfold(state, move |(mut frames, between)| async move {
        let next = if between {
            match tokio::time::timeout(every, frames.next()).await {
                Ok(next) => next,
                Err(_) => return Some((Ok(Bytes::from_static(b":\n\n")), (frames, true))),
            }
        } else {
            frames.next().await
        }?;
        let between = next.as_ref().is_ok_and(|frame| frame.ends_with(b"\n\n"));
        Some((next, (frames, between)))
    })
}
