//! The modern era over HTTP: each POST is independent. The call lives in its response, so
//! closing the connection cancels it (2026-07-28, Streamable HTTP: Cancellation).

use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use larder_protocol::{Fault, Meta, Method, Outgoing, Request, RequestId};

use super::{post::Post, sse};
use crate::{
    dispatch::{HeldReply, Running, Step},
    era::{
        Encoded, Era, MirroredHeaders, ResponseEncoder, ResponseMode, Subscription, encode_error,
        encode_reply,
    },
    http::{
        error::{HttpError, Reply},
        response::json_response,
    },
};

/// Answers a request.
pub(super) async fn answer(post: Post<'_>, request: Request, meta: Meta) -> Reply {
    let answers = post.answers();
    let Post { endpoint, head, identity, reader, accepts } = post;

    let lookup = |name: &str| head.mirrored(name);
    let headers = Some(MirroredHeaders(&lookup));
    let call = endpoint.modern.accept(&request, meta, headers, identity, reader)?;

    if call.method == Method::Listen {
        // A subscription is always a stream, even with `json_response`.
        if !accepts.stream {
            return Err(HttpError::NotAcceptable);
        }

        let identity = call.identity.clone();
        let dispatcher = &endpoint.dispatcher;
        let closing = endpoint.stages.closing.clone();
        let params = &call.params;
        let client = &call.client;
        let subscription =
            Subscription::new(request.id, params, &call.identity, client, dispatcher, closing);
        let subscription = Box::pin(subscription).await?;

        let permit = dispatcher.caller_limits().stream(&identity)?;
        let frames =
            subscription.messages().flat_map(|message| sse::message(Encoded::Complete(message)));
        return Ok(sse::response(sse::with_permit(frames, permit), endpoint));
    }

    let mut running = endpoint.dispatcher.start(call)?;
    let encoder = &endpoint.modern.encoder;

    match ResponseMode::decide(&mut running, answers, endpoint.options().promote_after).await {
        ResponseMode::Single(outcome) => {
            let encoded = encode_reply(&request.id, outcome?, encoder).await?;
            Ok(json_response(StatusCode::OK, encoded.into()))
        }
        ResponseMode::Stream(first) => {
            let messages = messages(running, first, request.id, encoder.clone());
            let frames = messages.flat_map(sse::message);
            Ok(sse::response(frames, endpoint))
        }
        // Only a disconnected client cancels a call, so nobody reads the fault.
        ResponseMode::Cancelled => Err(Fault::Internal("The call was cancelled.".into()).into()),
    }
}

/// The call's messages, then its response.
fn messages(
    running: Running,
    first: Option<Outgoing>,
    id: RequestId,
    encoder: ResponseEncoder,
) -> impl Stream<Item = Encoded> + Send {
    let state = (running, first, id, encoder);
    stream::unfold(state, |(mut running, mut first, id, encoder)| async move {
        loop {
            let step = match first.take() {
                Some(message) => Step::Message(message),
                None => running.next().await?,
            };

            let encoded = match step {
                Step::Message(message) => message.encode().map(Encoded::Complete),
                Step::Outcome(outcome) => Some(response(&id, outcome, &encoder).await),
            };

            if let Some(encoded) = encoded {
                return Some((encoded, (running, first, id, encoder)));
            }
        }
    })
}

/// The response to a request whose stream has begun. Errors become messages, since the HTTP
/// status is sent.
async fn response(
    id: &RequestId,
    outcome: Result<HeldReply, Fault>,
    encoder: &ResponseEncoder,
) -> Encoded {
    let encoded = match outcome {
        Ok(reply) => encode_reply(id, reply, encoder).await,
        Err(fault) => Err(fault),
    };

    encoded.unwrap_or_else(|fault| Encoded::Complete(encode_error(Some(id), &fault, Era::Modern)))
}
