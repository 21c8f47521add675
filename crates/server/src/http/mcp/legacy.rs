//! The legacy era over HTTP: `Mcp-Session-Id`, streams, and DELETE.

use axum::response::Response;
use http::{HeaderValue, StatusCode};
use larder_oauth::Identity;
use larder_protocol::{Fault, Meta, Params, Request, RequestId};
use serde_json::Value;

use super::{post::Post, sse};
use crate::{
    era::{Accepts, Answer, Encoded},
    http::{
        Endpoint,
        head::{Head, SESSION},
        response::{empty, json_response},
    },
};

/// Begins a session.
pub(in crate::http) async fn initialize(
    post: Post<'_>,
    request: Request,
) -> Result<Response, Fault> {
    let answers = post.answers();
    let Post { endpoint, identity, .. } = post;
    let (session, encoded) = endpoint.legacy.initialize(&request, &identity).await?;

    let mut response = single_message(encoded, answers, endpoint);
    // The conversion never fails: the ID has only hexadecimal digits.
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

/// Answers a request outside of a session.
pub(in crate::http) async fn single(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let answers = post.answers();
    let Post { endpoint, identity, .. } = post;
    let encoded = endpoint.legacy.answer_single(&request, meta, identity.clone()).await?;
    Ok(single_message(encoded, answers, endpoint))
}

/// Answers a request in a session.
pub(in crate::http) async fn in_session(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let answers = post.answers();
    let Post { endpoint, head, identity, .. } = post;
    let legacy = &endpoint.legacy;
    let session = legacy.session(session_id(head)?, identity.principal()).await?;
    let promote_after = endpoint.options().promote_after;

    match legacy.answer(&session, request, meta, identity.clone(), answers, promote_after).await? {
        Answer::Message(encoded) => Ok(single_message(encoded, answers, endpoint)),
        Answer::Stream { prime, deliveries } => {
            let prime = prime.map(|id| id.to_string());
            // The stream ends with the token, and the client resumes it with a new token.
            let deliveries = sse::until_invalid(deliveries, &identity);
            let frames = sse::resumable(prime, deliveries, endpoint.options().retry);
            Ok(sse::response(frames, endpoint))
        }
        // A cancelled request gets no response message.
        Answer::Cancelled if answers.stream => {
            Ok(sse::response(futures_util::stream::empty(), endpoint))
        }
        Answer::Cancelled => Ok(empty(StatusCode::NO_CONTENT)),
    }
}

/// Sends one message in the form that the client accepts.
fn single_message(encoded: Encoded, accepts: Accepts, endpoint: &Endpoint) -> Response {
    if !accepts.message {
        return sse::response(sse::message(encoded), endpoint);
    }
    json_response(StatusCode::OK, encoded.into())
}

/// Handles a notification.
pub(in crate::http) async fn notification(
    Post { endpoint, head, identity, .. }: &Post<'_>,
    method: &str,
    params: &Params,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other(method, identity)?;

    // Without a session there is no call that a notification could concern.
    if let Some(id) = head.session() {
        let session = endpoint.legacy.session(id, identity.principal()).await?;
        endpoint.legacy.handle_notification(&session, method, params).await?;
    }
    Ok(())
}

/// Handles the response to a request of the server.
pub(in crate::http) async fn response(
    Post { endpoint, head, identity, .. }: &Post<'_>,
    id: RequestId,
    outcome: Result<Value, String>,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other("a response", identity)?;
    let session = endpoint.legacy.session(session_id(head)?, identity.principal()).await?;
    endpoint.legacy.handle_response(&session, id, outcome).await
}

/// Opens the session's own stream, or resumes any of its streams.
pub(in crate::http) async fn open_stream(
    endpoint: &Endpoint,
    head: &Head,
    identity: &Identity,
) -> Result<Response, Fault> {
    endpoint.dispatcher.authorize_other("a stream", identity)?;
    let session = session_id(head)?;
    let session = endpoint.legacy.session(session, identity.principal()).await?;
    let permit = endpoint.dispatcher.caller_limits().stream(identity)?;

    let (prime, deliveries) =
        endpoint.legacy.open_stream(&session, head.last_event(), identity).await?;

    let retry = endpoint.options().retry;
    let prime = prime.map(|id| id.alias(&endpoint.random.id()));
    let deliveries = sse::until_invalid(deliveries, identity);
    let frames = sse::resumable(prime, deliveries, retry);
    let frames = sse::until_closing(frames, endpoint.stages.closing.clone(), retry);
    let frames = sse::with_permit(frames, permit);
    Ok(sse::response(frames, endpoint))
}

/// Ends the session.
pub(in crate::http) async fn end(
    endpoint: &Endpoint,
    head: &Head,
    identity: &Identity,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other("the end of a session", identity)?;
    endpoint.legacy.end(session_id(head)?, identity.principal()).await
}

fn session_id(head: &Head) -> Result<&str, Fault> {
    head.session().ok_or_else(|| {
        Fault::InvalidRequest(
            "The Mcp-Session-Id header is missing. The response to initialize contains it.".into(),
        )
    })
}
