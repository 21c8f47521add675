//! The modern era over HTTP: each POST by itself. Closing the connection
//! cancels the call (2026-07-28, Streamable HTTP: Cancellation), because the
//! call lives in the response.

use axum::{body::Body, response::Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode};

use super::{
    Endpoint,
    endpoint::header,
    refusal::{self, Refusal},
    sse,
};
use crate::{
    auth::Identity,
    dispatch::{Running, Step},
    era::{Dress, Encoded, Era, First, Listen, Mirror, Takes, encode_outcome, success},
    protocol::{Fault, Meta, Method, Outgoing, Request, RequestId},
};
use axum::response::IntoResponse;

/// Answers a request.
pub(super) async fn request(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    request: Request,
    meta: Meta,
    identity: Identity,
    takes: Takes,
) -> Response {
    let id = request.id.clone();
    match answer(endpoint, headers, request, meta, identity, takes).await {
        Ok(response) => response,
        Err(fault) => refusal::fault(Some(&id), &fault, Era::Modern),
    }
}

async fn answer(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    request: Request,
    meta: Meta,
    identity: Identity,
    takes: Takes,
) -> Result<Response, Fault> {
    let lookup = |name: &str| header(headers, name);
    let call = endpoint.modern.accept(&request, meta, Some(Mirror(&lookup)), identity)?;
    if call.method == Method::Listen {
        if !takes.stream {
            return Ok(Refusal::NotAcceptable.into_response());
        }
        let identity = call.identity.clone();
        let (dispatcher, closing) = (&endpoint.dispatcher, endpoint.closing.clone());
        let listen = Listen::new(request.id, &call.params, &call.identity, dispatcher, closing)?;
        let permit = dispatcher.principals().stream(&identity)?;
        let frames = listen.messages().flat_map(|message| sse::message(Encoded::Whole(message)));
        return Ok(sse::response(sse::holding(frames, permit), endpoint, &identity));
    }
    let identity = call.identity.clone();
    let mut running = endpoint.dispatcher.start(call)?;
    let dress = &endpoint.modern.dress;
    match First::of(&mut running, takes, endpoint.options.promote_after).await {
        First::Ready(outcome) => {
            let body = match success(&request.id, outcome?, dress).await? {
                Encoded::Whole(bytes) => Body::from(bytes),
                Encoded::Pieces(pieces) => Body::from_stream(pieces),
            };
            Ok(refusal::json(StatusCode::OK, body))
        }
        First::Stream(first) => {
            let messages = messages(running, first, request.id, dress.clone());
            let frames = messages.flat_map(sse::message);
            Ok(sse::response(frames, endpoint, &identity))
        }
        // Only the client's going cancels here, and then nobody reads this.
        First::Cancelled => Err(Fault::Internal("The call was cancelled.".into())),
    }
}

/// The call's messages, then its response.
fn messages(
    running: Running,
    first: Option<Outgoing>,
    id: RequestId,
    dress: Dress,
) -> impl Stream<Item = Encoded> + Send {
    let state = (running, first, id, dress);
    stream::unfold(state, |(mut running, mut first, id, dress)| async move {
        loop {
            let step = match first.take() {
                Some(message) => Step::Message(message),
                None => running.next().await?,
            };
            let encoded = match step {
                Step::Message(message) => message.encode().map(Encoded::Whole),
                Step::Outcome(Ok(reply)) => match success(&id, reply, &dress).await {
                    Ok(encoded) => Some(encoded),
                    Err(fault) => {
                        let message = encode_outcome(&id, Err(fault), &dress).await;
                        Some(Encoded::Whole(message))
                    }
                },
                Step::Outcome(Err(fault)) => {
                    let message = encode_outcome(&id, Err(fault), &dress).await;
                    Some(Encoded::Whole(message))
                }
            };
            if let Some(encoded) = encoded {
                return Some((encoded, (running, first, id, dress)));
            }
        }
    })
}
