//! The modern era over HTTP: each POST by itself. Closing the connection
//! cancels the call (2026-07-28, Streamable HTTP: Cancellation), because the
//! call lives in the response.

use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, StatusCode};

use super::{
    accept,
    error::{self, HttpError},
    headers::{VERSION, header},
    post::Post,
    sse,
};
use crate::{
    dispatch::{Reply, Running, Step},
    era::{Encoded, Era, Listen, MirroredHeaders, ResponseEncoder, ResponseMode, failure, success},
    protocol::{Fault, Meta, Method, Outgoing, Request, RequestId},
};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Answers a request.
pub(super) async fn answer(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let Post { endpoint, headers, identity, accepts } = post;
    // What is known beforehand need not be parsed for each look.
    let lookup = |name: &str| match name {
        "mcp-protocol-version" => header(headers, &VERSION),
        "mcp-method" => header(headers, &METHOD),
        "mcp-name" => header(headers, &NAME),
        other => header(headers, other),
    };
    let call = endpoint.modern.accept(&request, meta, Some(MirroredHeaders(&lookup)), identity)?;
    if call.method == Method::Listen {
        // A stream by its nature, also where answers are none.
        if !accept::accepts(headers).stream {
            return Ok(HttpError::NotAcceptable.into_response());
        }
        let identity = call.identity.clone();
        let (dispatcher, closing) = (&endpoint.dispatcher, endpoint.closing.clone());
        let listen = Listen::new(request.id, &call.params, &call.identity, dispatcher, closing);
        let listen = Box::pin(listen).await?;
        let permit = dispatcher.principals().stream(&identity)?;
        let frames = listen.messages().flat_map(|message| sse::message(Encoded::Whole(message)));
        return Ok(sse::response(sse::holding(frames, permit), endpoint, &identity));
    }
    let identity = call.identity.clone();
    let mut running = endpoint.dispatcher.start(call)?;
    let encoder = &endpoint.modern.encoder;
    match ResponseMode::of(&mut running, accepts, endpoint.options().promote_after).await {
        ResponseMode::Ready(outcome) => {
            let encoded = success(&request.id, outcome?, encoder).await?;
            Ok(error::json(StatusCode::OK, encoded.into()))
        }
        ResponseMode::Stream(first) => {
            let messages = messages(running, first, request.id, encoder.clone());
            let frames = messages.flat_map(sse::message);
            Ok(sse::response(frames, endpoint, &identity))
        }
        // Only the client's going cancels here, and then nobody reads this.
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
                Step::Message(message) => message.encode().map(Encoded::Whole),
                Step::Outcome(outcome) => Some(response(&id, outcome, &encoder).await),
            };
            if let Some(encoded) = encoded {
                return Some((encoded, (running, first, id, encoder)));
            }
        }
    })
}

/// The response to a request whose stream has begun: nothing but a message can
/// say now that there is no result.
async fn response(
    id: &RequestId,
    outcome: Result<Reply, Fault>,
    encoder: &ResponseEncoder,
) -> Encoded {
    let encoded = match outcome {
        Ok(reply) => success(id, reply, encoder).await,
        Err(fault) => Err(fault),
    };
    encoded.unwrap_or_else(|fault| Encoded::Whole(failure(Some(id), &fault, Era::Modern)))
}
