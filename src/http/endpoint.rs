//! The endpoint: reads a request, decides its era, and hands it on.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode};

use super::{
    Endpoint, accept, body,
    error::{self, HttpError},
    headers::{SESSION, VERSION, header},
    legacy, modern,
    post::Post,
};
use crate::{
    auth::Identity,
    era::{Era, Inbound, MessageContext},
    protocol::Fault,
};

/// Accepts one message.
pub(super) async fn post(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    body: Body,
    identity: Identity,
) -> Response {
    let mut accepts = accept::accepts(headers);
    if !accepts.message && !accepts.stream {
        return HttpError::NotAcceptable.into_response();
    }
    if endpoint.options().json_response {
        if !accepts.message {
            return HttpError::OnlyMessages.into_response();
        }
        accepts.stream = false;
    }
    let body = match body::read(headers, body, &endpoint.options()).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let context = MessageContext {
        version: header(headers, &VERSION),
        in_session: headers.contains_key(&SESSION),
    };
    let post = Post { endpoint, headers, identity, accepts };
    match Inbound::read(&body, context) {
        Inbound::Modern(request, meta) => {
            let id = request.id.clone();
            let answered = modern::answer(post, request, meta).await;
            answered.unwrap_or_else(|fault| error::fault(Some(&id), &fault, Era::Modern))
        }
        Inbound::Initialize(request) => {
            let id = request.id.clone();
            let answered = Box::pin(legacy::initialize(post, request)).await;
            answered.unwrap_or_else(|fault| error::fault(Some(&id), &fault, Era::Legacy))
        }
        Inbound::Single(request, meta) => {
            let id = request.id.clone();
            let answered = legacy::single(post, request, meta).await;
            answered.unwrap_or_else(|fault| error::fault(Some(&id), &fault, Era::Legacy))
        }
        Inbound::InSession(request, meta) => {
            let id = request.id.clone();
            let answered = legacy::in_session(post, request, meta).await;
            answered.unwrap_or_else(|fault| error::fault(Some(&id), &fault, Era::Legacy))
        }
        Inbound::Notification { method, params } => {
            let taken = legacy::notification(&post, &method, &params);
            Box::pin(taken).await.map_or_else(refused, accepted)
        }
        Inbound::Response { id, outcome } => {
            let taken = legacy::response(&post, id, outcome);
            Box::pin(taken).await.map_or_else(refused, accepted)
        }
        Inbound::Ignored => accepted(()),
        Inbound::Rejected { id, fault, era } => error::fault(id.as_ref(), &fault, era),
    }
}

/// Opens a stream of the legacy era, new or resumed.
pub(super) async fn get(endpoint: &Endpoint, headers: &HeaderMap, identity: &Identity) -> Response {
    if let Some(error) = refuse_modern(&Method::GET, headers) {
        return error;
    }
    if !accept::accepts(headers).stream {
        return HttpError::NotAcceptable.into_response();
    }
    legacy::connect(endpoint, headers, identity).await.unwrap_or_else(refused)
}

/// Ends a session of the legacy era.
pub(super) async fn delete(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    identity: &Identity,
) -> Response {
    if let Some(error) = refuse_modern(&Method::DELETE, headers) {
        return error;
    }
    let ended = legacy::end(endpoint, headers, identity).await;
    ended.map_or_else(refused, |()| StatusCode::NO_CONTENT.into_response())
}

/// Whatever else HTTP knows.
pub(super) fn other_method(method: &Method) -> Response {
    HttpError::Method(method.to_string(), "Use POST; GET and DELETE belong to sessions.")
        .into_response()
}

/// Somewhere else.
pub(super) fn other_path(endpoint: &Endpoint) -> Response {
    HttpError::Path(endpoint.options().path.clone()).into_response()
}

/// GET and DELETE are not of the modern era (Streamable HTTP: Earlier
/// Streamable HTTP Revisions).
fn refuse_modern(method: &Method, headers: &HeaderMap) -> Option<Response> {
    let version = header(headers, &VERSION)?;
    if Era::from_versions(None, Some(version)) != Era::Modern {
        return None;
    }
    let error = HttpError::Method(method.to_string(), "This version has POST only.");
    Some(error.into_response())
}

/// Taken, with nothing to say.
fn accepted((): ()) -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// What is no request, in the legacy era, and was not taken.
#[allow(clippy::needless_pass_by_value, reason = "what maps an error is given it")]
fn refused(fault: Fault) -> Response {
    error::fault(None, &fault, Era::Legacy)
}
