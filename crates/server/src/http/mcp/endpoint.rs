//! The MCP endpoint: reads a request and passes it to its protocol era.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode};
use larder_oauth::{Identity, audit};
use larder_protocol::{Fault, quote::shortened};

use super::{
    accept,
    body::{self, BodyError},
    headers::{SESSION, VERSION, header},
    legacy, modern,
    post::Post,
};
use crate::{
    admission::RequestPermit,
    era::{Era, Inbound, MessageContext, Unread},
    http::{
        Endpoint,
        error::{self, HttpError},
    },
};

/// Handles a POST request: one message.
pub(in crate::http) async fn post(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    body: Body,
    identity: Identity,
    permit: &RequestPermit,
) -> Response {
    match receive(endpoint, headers, body, identity, permit).await {
        Ok((post, inbound)) => respond(post, inbound).await,
        Err(response) => *response,
    }
}

/// Handles a POST request that has one request of 2026-07-28. No other message has an effect, so
/// that no session begins.
pub(in crate::http) async fn post_modern(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    body: Body,
    identity: Identity,
    permit: &RequestPermit,
) -> Response {
    match receive(endpoint, headers, body, identity, permit).await {
        Ok((post, inbound @ (Inbound::Modern(..) | Inbound::Rejected { .. }))) => {
            respond(post, inbound).await
        }
        Ok(_) => HttpError::ModernOnly.into_response(),
        Err(response) => *response,
    }
}

/// Reads the message of a POST request.
///
/// # Errors
/// The response to what is no message, or cannot be read now.
async fn receive<'a>(
    endpoint: &'a Endpoint,
    headers: &'a HeaderMap,
    body: Body,
    identity: Identity,
    permit: &RequestPermit,
) -> Result<(Post<'a>, Inbound), Box<Response>> {
    let refused = |error: HttpError| Err(Box::new(error.into_response()));
    let options = endpoint.options.load_full();

    let mut accepts = accept::accepts(headers);
    if !accepts.message && !accepts.stream {
        return refused(HttpError::NotAcceptable);
    }
    if options.json_response {
        if !accepts.message {
            return refused(HttpError::JsonOnly);
        }
        accepts.stream = false;
    }

    let body = match body::read(headers, body, &options, permit).await {
        Ok(body) => body,
        Err(BodyError::Http(error)) => return refused(error),
        Err(BodyError::Limited(limited)) => {
            audit::refused(&identity, &"a request body", &limited);
            return Err(Box::new(rejected(limited.into())));
        }
    };

    let max_values = options.body_values;
    let context = MessageContext {
        version: header(headers, &VERSION),
        in_session: headers.contains_key(&SESSION),
    };
    let (owner, dispatcher) = (identity.owner(), &endpoint.dispatcher);

    match Inbound::receive(body, context, max_values, owner, dispatcher).await {
        Ok(inbound) => Ok((Post { endpoint, headers, identity, accepts }, inbound)),
        Err(Unread::TooManyValues) => refused(HttpError::TooManyValues(max_values)),
        Err(Unread::Busy(fault)) => Err(Box::new(rejected(fault))),
    }
}

/// Handles a message.
async fn respond(post: Post<'_>, inbound: Inbound) -> Response {
    match inbound {
        Inbound::Modern(request, meta) => {
            let id = request.id.clone();
            let response = modern::answer(post, request, meta).await;
            response.unwrap_or_else(|fault| error::fault_response(Some(&id), &fault, Era::Modern))
        }
        Inbound::Initialize(request) => {
            let id = request.id.clone();
            let response = Box::pin(legacy::initialize(post, request)).await;
            response.unwrap_or_else(|fault| error::fault_response(Some(&id), &fault, Era::Legacy))
        }
        Inbound::Single(request, meta) => {
            let id = request.id.clone();
            let response = legacy::single(post, request, meta).await;
            response.unwrap_or_else(|fault| error::fault_response(Some(&id), &fault, Era::Legacy))
        }
        Inbound::InSession(request, meta) => {
            let id = request.id.clone();
            let response = legacy::in_session(post, request, meta).await;
            response.unwrap_or_else(|fault| error::fault_response(Some(&id), &fault, Era::Legacy))
        }

        Inbound::Notification { method, params } => {
            let handled = legacy::notification(&post, &method, &params);
            Box::pin(handled).await.map_or_else(rejected, accepted)
        }
        Inbound::Response { id, outcome } => {
            let handled = legacy::response(&post, id, outcome);
            Box::pin(handled).await.map_or_else(rejected, accepted)
        }

        Inbound::Ignored => accepted(()),
        Inbound::Rejected { id, fault, era } => error::fault_response(id.as_ref(), &fault, era),
    }
}

/// Handles a GET request: opens or resumes a legacy stream.
pub(in crate::http) async fn get(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    identity: &Identity,
) -> Response {
    if let Some(error) = reject_modern(&Method::GET, headers) {
        return error;
    }
    if !accept::accepts(headers).stream {
        return HttpError::NotAcceptable.into_response();
    }

    legacy::open_stream(endpoint, headers, identity).await.unwrap_or_else(rejected)
}

/// Handles a DELETE request: ends a legacy session.
pub(in crate::http) async fn delete(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    identity: &Identity,
) -> Response {
    if let Some(error) = reject_modern(&Method::DELETE, headers) {
        return error;
    }

    let ended = legacy::end(endpoint, headers, identity).await;
    ended.map_or_else(rejected, |()| StatusCode::NO_CONTENT.into_response())
}

/// The response to other methods.
pub(in crate::http) fn other_method(method: &Method) -> Response {
    let method = shortened(method.as_str()).into_owned();
    HttpError::Method(method, "Use POST, or GET and DELETE within a session.").into_response()
}

/// The response to other paths.
pub(in crate::http) fn other_path(endpoint: &Endpoint) -> Response {
    HttpError::Path(endpoint.options().path.clone()).into_response()
}

/// Rejects GET and DELETE in the modern era (Streamable HTTP: Earlier Streamable HTTP
/// Revisions).
fn reject_modern(method: &Method, headers: &HeaderMap) -> Option<Response> {
    let version = header(headers, &VERSION)?;
    if Era::from_versions(None, Some(version)) != Era::Modern {
        return None;
    }

    let error = HttpError::Method(method.to_string(), "This protocol version uses POST only.");
    Some(error.into_response())
}

/// 202 without a body.
fn accepted((): ()) -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// The response to a rejected legacy message that has no ID.
#[allow(clippy::needless_pass_by_value, reason = "passed to map_or_else")]
fn rejected(fault: Fault) -> Response {
    error::fault_response(None, &fault, Era::Legacy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_method_is_not_sent_back() {
        let method = Method::from_bytes(&[b'A'; 5000]).expect("it is a token");
        let response = other_method(&method);

        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        assert!(body.expect("it is complete").len() < 500);
    }
}
