//! Refusals and faults as HTTP responses, in one place.

use std::{any::Any, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

use crate::{
    auth::{Denied, MOST_TOKEN_BYTES},
    era::{Era, failure},
    protocol::{Fault, RequestId},
};

/// A request that is refused for what HTTP alone shows of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error(
        "The Host header {0:?} is not a name of this server. If it should be, add it to server.allowed_hosts or set server.public_url."
    )]
    Host(String),
    #[error(
        "Pages of the origin {0:?} may not call this server. If they should, add it to server.allowed_origins."
    )]
    Origin(String),
    #[error(
        "The content type must be application/json, not {0:?}. Add the header content-type: application/json."
    )]
    MediaType(String),
    #[error(
        "The client accepts neither application/json nor text/event-stream. Send accept: application/json, text/event-stream."
    )]
    NotAcceptable,
    #[error("This server answers by application/json alone (server.json_response); accept that.")]
    OnlyMessages,
    #[error("The body is larger than {0} bytes, the most this server takes (limits.body_bytes).")]
    TooLarge(usize),
    #[error(
        "The body has more than {0} JSON values, the most this server takes (limits.body_values). Send bulky data as text, in one string."
    )]
    TooManyValues(usize),
    #[error("The body came too slowly.")]
    TooSlow,
    #[error("The body broke off.")]
    BrokenOff,
    #[error("{0} is not allowed here. {1}")]
    Method(String, &'static str),
    #[error("Nothing is here. The endpoint is {0}.")]
    Path(String),
    #[error("This server takes requests with a bearer token only: Authorization: Bearer <token>.")]
    NoCredentials,
    #[error("The request's credentials cannot be read: {0}.")]
    Credentials(&'static str),
    #[error("The request's token is not accepted: {0}.")]
    Token(Denied),
    #[error("The Authorization header is too long: a token has at most {MOST_TOKEN_BYTES} bytes.")]
    TokenTooLong,
    #[error("The request's token cannot be checked now. Try again shortly.")]
    CannotCheck,
}

impl HttpError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Host(_) | Self::Origin(_) => StatusCode::FORBIDDEN,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable | Self::OnlyMessages => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge(_) | Self::TooManyValues(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenOff | Self::Credentials(_) => StatusCode::BAD_REQUEST,
            Self::Method(..) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Path(_) => StatusCode::NOT_FOUND,
            Self::NoCredentials | Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TokenTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::CannotCheck => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let status = self.status();
        let allow = match &self {
            Self::Method(_, allow) => {
                Some(if allow.contains("GET") { "GET, POST, DELETE" } else { "POST" })
            }
            _ => None,
        };
        // As JSON-RPC without an id: clients and people can both read it.
        let body = failure(None, &Fault::InvalidRequest(self.to_string()), Era::Legacy);
        let mut response = json(status, body.into());
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// A fault as a response.
pub(super) fn fault(id: Option<&RequestId>, fault: &Fault, era: Era) -> Response {
    let mut response = json(status(fault, era), failure(id, fault, era).into());
    match fault {
        Fault::InsufficientScope { required } => {
            // The challenge is put on where all challenges are.
            response.extensions_mut().insert(StepUp(required.join(" ")));
        }
        Fault::Limited { retry_after, .. } => retry(&mut response, *retry_after),
        Fault::TooMany(_) => retry(&mut response, Duration::from_secs(1)),
        _ => {}
    }
    response
}

/// Marks a response: more scopes would make it another one.
#[derive(Debug, Clone)]
pub(super) struct StepUp(pub(super) String);

/// Says when trying again makes sense, in whole seconds.
pub(super) fn retry(response: &mut Response, after: Duration) {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}

/// The HTTP status of a fault. What a well-formed request comes to inside the
/// protocol is a 200 with an error in it, except where 2026-07-28 names a
/// status (Streamable HTTP: Protocol Version Header, Server Validation).
fn status(fault: &Fault, era: Era) -> StatusCode {
    match fault {
        Fault::Parse(_)
        | Fault::InvalidRequest(_)
        | Fault::MissingMeta(_)
        | Fault::HeaderMismatch(_)
        | Fault::MissingCapability { .. }
        | Fault::UnsupportedVersion { .. } => StatusCode::BAD_REQUEST,
        Fault::SessionNotFound | Fault::StreamNotFound(_) => StatusCode::NOT_FOUND,
        Fault::MethodNotFound(_) if era == Era::Modern => StatusCode::NOT_FOUND,
        Fault::TooMany(_) | Fault::Limited { .. } => StatusCode::TOO_MANY_REQUESTS,
        Fault::InsufficientScope { .. } => StatusCode::FORBIDDEN,
        // A GET or DELETE has no other way to say it, and proxies know what it means.
        Fault::SessionsUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Fault::MethodNotFound(_)
        | Fault::InvalidParams { .. }
        | Fault::ResourceNotFound { .. }
        | Fault::Internal(_)
        | Fault::Unavailable(_) => StatusCode::OK,
    }
}

/// A JSON body. Answers are a caller's own and are not to be stored on the way.
pub(super) fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A panic that no handler's own guard has caught.
#[allow(clippy::needless_pass_by_value, reason = "the signature that tower-http asks for")]
pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request panicked");
    let fault = Fault::Internal("Internal error. Other requests are not affected.".into());
    json(StatusCode::INTERNAL_SERVER_ERROR, failure(None, &fault, Era::Legacy).into())
}
