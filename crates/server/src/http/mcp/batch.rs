//! A batch in one body, answered by the list of the responses.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream};
use http::StatusCode;
use larder_protocol::Fault;

use super::{message, post::Post, sse};
use crate::{
    era::{Accepts, Encoded, Era, Inbound, batch},
    http::{
        Endpoint,
        error::{HttpError, Reply},
        response::{empty, json_response},
        surface::Format,
    },
};

/// Answers a batch, if it is one of a session that has batches. `None` for any other, which is
/// answered as a message that is none.
pub(super) async fn answer(post: &Post<'_>, body: &Bytes) -> Option<Reply> {
    let session = post.head.session()?;
    let session = post.endpoint.legacy.session(session, post.identity.principal()).await.ok()?;
    if !batch::has_batches(&session) {
        return None;
    }

    let messages = match batch::messages(body) {
        Ok(messages) => messages,
        Err(fault) => return Some(Err(HttpError::Fault { id: None, fault, era: Era::Legacy })),
    };

    let answered = messages.into_iter().map(|message| one(post, message));
    let responses = join_all(answered.map(Box::pin)).await;

    let responses: Vec<_> = responses.into_iter().filter(is_message).collect();
    if responses.is_empty() {
        return Some(Ok(empty(StatusCode::ACCEPTED)));
    }
    Some(Ok(list(responses, post.accepts, post.endpoint)))
}

/// Answers one message of a batch, also if it is refused.
async fn one(post: &Post<'_>, message: Bytes) -> Response {
    // Each response is one message, because they are sent as one list.
    let post = Post {
        endpoint: post.endpoint,
        head: post.head,
        identity: post.identity.clone(),
        reader: post.reader,
        accepts: Accepts { message: true, stream: false },
    };

    let answered = match message::read(&post, message).await {
        Ok(Inbound::Initialize(request)) => {
            let fault = Fault::InvalidRequest("initialize must not be in a batch.".into());
            Err(HttpError::Fault { id: Some(request.id), fault, era: Era::Legacy })
        }
        Ok(inbound) => message::respond(post, inbound).await,
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| Format::JsonRpc.write(&error, false))
}

/// Whether a response has a message of JSON-RPC.
fn is_message(response: &Response) -> bool {
    !matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT)
}

/// The list of the messages in these responses.
fn list(responses: Vec<Response>, accepts: Accepts, endpoint: &Endpoint) -> Response {
    let text = |text: &'static str| stream::iter([Ok(Bytes::from_static(text.as_bytes()))]);
    let messages =
        stream::iter(responses.into_iter().enumerate()).flat_map(move |(index, response)| {
            let separator = text(if index == 0 { "[" } else { "," });
            let body = response.into_body().into_data_stream();
            separator.chain(body.map(|chunk| chunk.map_err(std::io::Error::other)))
        });
    let chunks = messages.chain(text("]")).boxed();

    if !accepts.message {
        return sse::response(sse::message(Encoded::Chunks(chunks)), endpoint);
    }
    json_response(StatusCode::OK, Body::from_stream(chunks))
}
