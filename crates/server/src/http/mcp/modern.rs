//! The modern era over HTTP: each POST is independent. The call lives in its response, so
//! closing the connection cancels it (2026-07-28, Streamable HTTP: Cancellation).

use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, StatusCode};
use larder_protocol::{Fault, Meta, Method, Outgoing, Request, RequestId};

use super::{
    accept,
    headers::{VERSION, header},
    post::Post,
    sse,
};
use crate::{
    dispatch::{HeldReply, Running, Step},
    era::{
        Encoded, Era, MirroredHeaders, ResponseEncoder, ResponseMode, Subscription, encode_error,
        encode_reply,
    },
    http::error::{self, HttpError},
};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Answers a request.
pub(in crate::http) async fn answer(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let Post { endpoint, headers, identity, accepts } = post;

    // Header names that are constants need not be parsed for each lookup.
    let lookup = |name: &str| match name {
        "mcp-protocol-version" => header(headers, &VERSION),
        "mcp-method" => header(headers, &METHOD),
        "mcp-name" => header(headers, &NAME),
        other => header(headers, other),
    };

    let call = endpoint.modern.accept(&request, meta, Some(MirroredHeaders(&lookup)), identity)?;

    if call.method == Method::Listen {
        // A subscription is always a stream, even with `json_response`.
        if !accept::accepts(headers).stream {
            return Ok(HttpError::NotAcceptable.into_response());
        }

        let identity = call.identity.clone();
        let (dispatcher, closing) = (&endpoint.dispatcher, endpoint.stages.closing.clone());
        let (params, client) = (&call.params, &call.client);
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

    match ResponseMode::decide(&mut running, accepts, endpoint.options().promote_after).await {
        ResponseMode::Single(outcome) => {
            let encoded = encode_reply(&request.id, outcome?, encoder).await?;
            Ok(error::json_response(StatusCode::OK, encoded.into()))
        }
        ResponseMode::Stream(first) => {
            let messages = messages(running, first, request.id, encoder.clone());
            let frames = messages.flat_map(sse::message);
            Ok(sse::response(frames, endpoint))
        }
        // Only a disconnected client cancels a call, so nobody reads the fault.
        ResponseMode::Cancelled => Err(Fault::Internal("The call was cancelled.".into())),
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
