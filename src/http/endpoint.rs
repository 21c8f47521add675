//! The endpoint: reads a request, decides its era, and hands it on.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, Method, StatusCode, header::AsHeaderName};

use super::{
    Endpoint, accept, body,
    error::{self, HttpError},
    legacy, modern,
};
use crate::{
    auth::Identity,
    era::{Accepts, Era},
    protocol::{Fault, Message, Meta, ProtocolVersion, Request, parse},
};

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A request, with all that its era needs to answer it.
pub(super) struct Received<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) request: Request,
    pub(super) meta: Meta,
    pub(super) identity: Identity,
    pub(super) accepts: Accepts,
}

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
    let version = header(headers, &VERSION);
    let by_header = Era::of(None, version);
    let message = match parse(&body) {
        Ok(message) => message,
        Err((fault, id)) => return error::fault(id.as_ref(), &fault, by_header),
    };
    match message {
        Message::Request(request) => {
            let meta = match Meta::read(&request.params) {
                Ok(meta) => meta,
                Err(fault) => {
                    let fault =
                        Fault::MissingMeta(format!("The request's _meta cannot be read: {fault}"));
                    return error::fault(Some(&request.id), &fault, by_header);
                }
            };
            let (id, era) =
                (request.id.clone(), Era::of(meta.protocol_version.as_deref(), version));
            let received = Received { headers, request, meta, identity, accepts };
            let answered = match era {
                Era::Modern => modern::answer(endpoint, received).await,
                Era::Legacy => legacy::answer(endpoint, received).await,
            };
            answered.unwrap_or_else(|fault| error::fault(Some(&id), &fault, era))
        }
        // 2026-07-28 defines no notification that a client sends over HTTP.
        Message::Notification { .. } if by_header == Era::Modern => accepted(()),
        Message::Notification { method, params } => {
            let taken = legacy::notification(endpoint, headers, &method, &params, &identity);
            Box::pin(taken).await.map_or_else(refused, accepted)
        }
        Message::Response { id, .. } if by_header == Era::Modern => {
            let fault = Fault::InvalidRequest("Responses are not sent in this version.".into());
            error::fault(Some(&id), &fault, by_header)
        }
        Message::Response { id, outcome } => {
            let taken = legacy::response(endpoint, headers, &id, outcome, &identity);
            Box::pin(taken).await.map_or_else(refused, accepted)
        }
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
    if Era::of(None, Some(version)) != Era::Modern {
        return None;
    }
    let error = HttpError::Method(method.to_string(), "This version has POST only.");
    Some(error.into_response())
}

/// A header's value, when it is there. What is no text, or was given more than
/// once, must not count as left out: it is given as something that is equal to
/// nothing.
pub(super) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    const NONSENSE: &str = "\u{fffd}";
    // Mostly nothing was given twice, and the map knows that at once.
    if headers.len() == headers.keys_len() {
        return Some(headers.get(name)?.to_str().unwrap_or(NONSENSE));
    }
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().unwrap_or(NONSENSE);
    Some(if values.next().is_some() { NONSENSE } else { value })
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

/// A legacy version header must name a version that is spoken here
/// (2025-11-25, transports: Protocol Version Header).
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Fault> {
    match header(headers, &VERSION) {
        Some(version) if ProtocolVersion::parse(version).is_none() => {
            Err(Fault::unsupported_version(version, ProtocolVersion::LATEST))
        }
        _ => Ok(()),
    }
}
