//! The legacy era over HTTP: `Mcp-Session-Id`, streams, DELETE.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use super::{
    Endpoint, error,
    headers::{SESSION, header},
    post::Post,
    sse,
};
use crate::{
    auth::Identity,
    era::{Accepts, Answer, Encoded},
    protocol::{Fault, Meta, Params, Request, RequestId},
};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Begins a session.
pub(super) async fn initialize(post: Post<'_>, request: Request) -> Result<Response, Fault> {
    let Post { endpoint, identity, accepts, .. } = post;
    let (session, encoded) = endpoint.legacy.initialize(&request, &identity).await?;
    let mut response = one(encoded, accepts, endpoint, &identity);
    // Hexadecimal digits only.
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

/// Answers a request outside of a session.
pub(super) async fn single(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let Post { endpoint, identity, accepts, .. } = post;
    let encoded = endpoint.legacy.answer_once(&request, meta, identity.clone()).await?;
    Ok(one(encoded, accepts, endpoint, &identity))
}

/// Answers a request in a session.
pub(super) async fn in_session(
    post: Post<'_>,
    request: Request,
    meta: Meta,
) -> Result<Response, Fault> {
    let Post { endpoint, headers, identity, accepts } = post;
    let legacy = &endpoint.legacy;
    let session = legacy.session(session_of(headers)?, identity.principal()).await?;
    let promote = endpoint.options().promote_after;
    match legacy.answer(&session, request, meta, identity.clone(), accepts, promote).await? {
        Answer::Message(encoded) => Ok(one(encoded, accepts, endpoint, &identity)),
        Answer::Stream { prime, deliveries } => {
            let frames = sse::resumable(prime, deliveries, endpoint.options().retry);
            Ok(sse::response(frames, endpoint, &identity))
        }
        // Nothing is said of what was cancelled.
        Answer::Cancelled if accepts.stream => {
            Ok(sse::response(futures_util::stream::empty(), endpoint, &identity))
        }
        Answer::Cancelled => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// One message, in the form that the client takes.
fn one(encoded: Encoded, accepts: Accepts, endpoint: &Endpoint, identity: &Identity) -> Response {
    if !accepts.message {
        return sse::response(sse::message(encoded), endpoint, identity);
    }
    error::json(StatusCode::OK, encoded.into())
}

/// Accepts a notification.
pub(super) async fn notification(
    Post { endpoint, headers, identity, .. }: &Post<'_>,
    method: &str,
    params: &Params,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other(method, identity)?;
    // Without a session there is nothing that it could concern.
    if let Some(id) = header(headers, &SESSION) {
        let session = endpoint.legacy.session(id, identity.principal()).await?;
        endpoint.legacy.notified(&session, method, params).await?;
    }
    Ok(())
}

/// Accepts the answer to a request of the server's.
pub(super) async fn response(
    Post { endpoint, headers, identity, .. }: &Post<'_>,
    id: RequestId,
    outcome: Result<Value, String>,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other("a response", identity)?;
    let session = endpoint.legacy.session(session_of(headers)?, identity.principal()).await?;
    endpoint.legacy.answered(&session, id, outcome).await
}

/// Opens the session's own stream, or resumes any of its streams.
pub(super) async fn connect(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    identity: &Identity,
) -> Result<Response, Fault> {
    endpoint.dispatcher.authorize_other("a stream", identity)?;
    let session = session_of(headers)?;
    let session = endpoint.legacy.session(session, identity.principal()).await?;
    let permit = endpoint.dispatcher.principals().stream(identity)?;
    let (prime, deliveries) =
        endpoint.legacy.connect(&session, header(headers, &LAST_EVENT), identity).await?;
    let retry = endpoint.options().retry;
    let frames = sse::resumable(prime, deliveries, retry);
    let frames = sse::until_closing(frames, endpoint.closing.clone(), retry);
    let frames = sse::holding(frames, permit);
    Ok(sse::response(frames, endpoint, identity))
}

/// Ends the session.
pub(super) async fn end(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    identity: &Identity,
) -> Result<(), Fault> {
    endpoint.dispatcher.authorize_other("the end of a session", identity)?;
    endpoint.legacy.end(session_of(headers)?, identity.principal()).await
}

fn session_of(headers: &HeaderMap) -> Result<&str, Fault> {
    header(headers, &SESSION).ok_or_else(|| {
        Fault::InvalidRequest(
            "The Mcp-Session-Id header is missing; initialize answers with it.".into(),
        )
    })
}
