//! HTTP errors and protocol faults as HTTP responses.

use std::{any::Any, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use larder_oauth::{Denied, MAX_TOKEN_BYTES};
use larder_protocol::{Fault, RequestId};
use larder_runtime::panics::PanicSite;

use crate::era::{Era, encode_error};

/// An error that HTTP alone shows, without parsing the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error(
        "The Host header {0:?} is not allowed. If this server has that name, add it to server.allowed_hosts or set server.public_url."
    )]
    Host(String),
    #[error("The Host header is missing.")]
    NoHost,
    #[error("The Host header {0:?} is not a host and a port.")]
    HostSyntax(String),
    #[error("The Host header and the request target name different hosts.")]
    HostDiffers,
    #[error("The request has several {0} headers.")]
    Duplicate(&'static str),
    #[error(
        "The origin {0:?} is not allowed. To allow its pages, add it to server.allowed_origins."
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
    #[error(
        "This server responds with application/json only (server.json_response). Accept application/json."
    )]
    JsonOnly,
    #[error("The body is larger than the limit of {0} bytes (limits.body_bytes).")]
    TooLarge(usize),
    #[error(
        "The body has more than {0} JSON values (limits.body_values). Send large data as one string."
    )]
    TooManyValues(usize),
    #[error("The body arrived too slowly (limits.body_rate, limits.body_timeout).")]
    TooSlow,
    #[error("The body is incomplete.")]
    Incomplete,
    #[error(
        "Only requests of 2026-07-28 are served here: send the header mcp-protocol-version: 2026-07-28."
    )]
    ModernOnly,
    #[error("{0} is not allowed here. {1}")]
    Method(String, &'static str),
    #[error("Not found. The MCP endpoint is {0}.")]
    Path(String),
    #[error("A bearer token is required: Authorization: Bearer <token>.")]
    NoCredentials,
    #[error("The Authorization header is invalid: {0}.")]
    Credentials(&'static str),
    #[error("The token is not accepted: {0}.")]
    Token(Denied),
    #[error("The Authorization header is too long: a token has at most {MAX_TOKEN_BYTES} bytes.")]
    TokenTooLong,
    #[error("The token cannot be checked now. Try again shortly.")]
    AuthUnavailable,
}

impl HttpError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Host(_) | Self::Origin(_) => StatusCode::FORBIDDEN,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable | Self::JsonOnly => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge(_) | Self::TooManyValues(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoHost
            | Self::HostSyntax(_)
            | Self::HostDiffers
            | Self::Duplicate(_)
            | Self::Incomplete
            | Self::Credentials(_)
            | Self::ModernOnly => StatusCode::BAD_REQUEST,

            Self::Method(..) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Path(_) => StatusCode::NOT_FOUND,

            Self::NoCredentials | Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TokenTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::AuthUnavailable => StatusCode::SERVICE_UNAVAILABLE,
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

        // JSON-RPC without an ID, readable by clients and people.
        let body = encode_error(None, &Fault::InvalidRequest(self.to_string()), Era::Legacy);
        let mut response = json_response(status, body.into());
        response.extensions_mut().insert(ErrorText(self.to_string()));

        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// The response for a protocol fault.
pub(super) fn fault_response(id: Option<&RequestId>, fault: &Fault, era: Era) -> Response {
    let mut response = json_response(status(fault, era), encode_error(id, fault, era).into());
    response.extensions_mut().insert(ErrorText(fault.to_string()));

    match fault {
        Fault::InsufficientScope { required } => {
            // The `bearer` module adds the challenge.
            response.extensions_mut().insert(MissingScopes(required.join(" ")));
        }
        Fault::Limited { retry_after, .. } | Fault::Busy { retry_after, .. } => {
            set_retry_after(&mut response, *retry_after);
        }
        Fault::TooMany(_) => set_retry_after(&mut response, Duration::from_secs(1)),
        _ => {}
    }

    response
}

/// The text of an error response, for paths whose errors are no JSON-RPC messages.
#[derive(Debug, Clone)]
pub(super) struct ErrorText(pub(super) String);

/// Marks a response to a token that lacks scopes. Holds the required scopes.
#[derive(Debug, Clone)]
pub(super) struct MissingScopes(pub(super) String);

/// Sets `Retry-After`, in whole seconds.
pub(super) fn set_retry_after(response: &mut Response, after: Duration) {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}

/// The HTTP status of a fault. Errors of well-formed requests are a 200 with a JSON-RPC
/// error, except where 2026-07-28 requires a status (Streamable HTTP: Protocol Version
/// Header, Server Validation).
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
        // GET and DELETE can report an outage only by the status, which proxies understand as well.
        Fault::SessionsUnavailable(_) | Fault::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,

        Fault::MethodNotFound(_)
        | Fault::InvalidParams { .. }
        | Fault::Relayed { .. }
        | Fault::ResourceNotFound { .. }
        | Fault::TokenExpired
        | Fault::TimedOut { .. }
        | Fault::Internal(_)
        | Fault::Unavailable(_) => StatusCode::OK,
    }
}

/// A JSON response. It belongs to one caller and must not be cached on the way.
pub(super) fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The response after a panic outside of a handler.
#[allow(clippy::needless_pass_by_value, reason = "the signature that tower-http requires")]
pub(super) fn panic_response(_: Box<dyn Any + Send>) -> Response {
    PanicSite::Request.count();
    tracing::error!("a request panicked");

    let fault = Fault::Internal("Internal error. Other requests are not affected.".into());
    json_response(StatusCode::INTERNAL_SERVER_ERROR, encode_error(None, &fault, Era::Legacy).into())
}
