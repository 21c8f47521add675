//! [`HttpError`]: why a request is refused. Handlers return it, and the surface of the route
//! decides once in which format it is written.

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use larder_login::{self as login, ErrorCode, FetchLimit};
use larder_oauth::{Denied, MAX_TOKEN_BYTES};
use larder_protocol::{Fault, RequestId};
use larder_store::store::StoreError;

use super::problem::Problem;
use crate::{admission::LimitReached, era::Era, registry::LoginProblem};

/// The result of handling a request, or a part of it.
pub(super) type Reply<T = Response> = Result<T, HttpError>;

/// A refused request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    #[error("The body is over {0} bytes, or incomplete.")]
    FormTooLarge(usize),
    #[error("Too many forms of this address are in progress. Try again shortly.")]
    TooManyForms,
    #[error(
        "Only requests of 2026-07-28 are served here: send the header mcp-protocol-version: 2026-07-28."
    )]
    ModernOnly,
    #[error("{method} is not allowed here. {advice}")]
    Method { method: String, allow: String, advice: String },
    #[error("Not found. The MCP endpoint is {0}.")]
    Path(String),
    #[error("Internal error. Other requests are not affected.")]
    Panicked,

    #[error("A bearer token is required: Authorization: Bearer <token>.")]
    NoCredentials,
    #[error("The Authorization header is invalid: {0}.")]
    Credentials(&'static str),
    #[error("The token is not accepted: {0}.")]
    Token(Denied),
    #[error("The Authorization header is too long: a token has at most {MAX_TOKEN_BYTES} bytes.")]
    TokenTooLong,
    #[error("The token cannot be checked now. Try again shortly.")]
    AuthUnavailable(Duration),

    /// An error of the protocol, in the era of the client, and the request that it answers.
    #[error("{fault}")]
    Fault { id: Option<RequestId>, fault: Fault, era: Era },
    /// An error of content, or of the console.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// An error of a login at this server.
    #[error("{0}")]
    Login(login::Problem),
    /// A page of its own for the person at the browser.
    #[error("{}", .0.text)]
    Page(Box<ErrorPage>),
}

/// A page that says why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorPage {
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    /// The text of the error.
    pub(super) text: String,
    /// The body of the page, in HTML.
    pub(super) html: String,
    pub(super) retry_after: Option<Duration>,
}

impl HttpError {
    /// The status. Faults of requests that are no JSON-RPC have one of HTTP.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Fault { fault, .. } => http_status(fault),
            other => other.json_rpc_status(),
        }
    }

    /// The status of a JSON-RPC error. Errors of well-formed requests are a 200.
    pub(super) fn json_rpc_status(&self) -> StatusCode {
        match self {
            Self::Host(_) | Self::Origin(_) => StatusCode::FORBIDDEN,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable | Self::JsonOnly => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge(_) | Self::TooManyValues(_) | Self::FormTooLarge(_) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::TooManyForms => StatusCode::TOO_MANY_REQUESTS,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoHost
            | Self::HostSyntax(_)
            | Self::HostDiffers
            | Self::Duplicate(_)
            | Self::Incomplete
            | Self::Credentials(_)
            | Self::ModernOnly => StatusCode::BAD_REQUEST,

            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Path(_) => StatusCode::NOT_FOUND,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,

            Self::NoCredentials | Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TokenTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::AuthUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,

            Self::Fault { fault, era, .. } => fault_status(fault, *era),
            Self::Problem(problem) => problem.status,
            Self::Login(problem) => login_status(problem),
            Self::Page(page) => page.status,
        }
    }

    /// How long to wait before the request is sent again, if that may help.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let second = Duration::from_secs(1);
        match self {
            Self::TooManyForms => Some(second),
            Self::AuthUnavailable(after) => Some(*after),
            Self::Fault { fault, .. } => match fault {
                Fault::Limited { retry_after, .. } | Fault::Busy { retry_after, .. } => {
                    Some(*retry_after)
                }
                Fault::TooMany(_) => Some(second),
                _ => None,
            },
            Self::Problem(problem) => problem.retry_after,
            Self::Login(problem) => login_retry_after(problem),
            Self::Page(page) => page.retry_after,
            _ => None,
        }
    }

    /// Whether the request names another host or comes from a page of another origin.
    pub(super) fn is_of_another_site(&self) -> bool {
        matches!(
            self,
            Self::Host(_)
                | Self::NoHost
                | Self::HostSyntax(_)
                | Self::HostDiffers
                | Self::Duplicate(_)
                | Self::Origin(_)
        )
    }

    /// An error of the protocol as the answer to a request.
    pub(super) fn answering(self, request: RequestId, era: Era) -> Self {
        match self {
            Self::Fault { id: None, fault, .. } => Self::Fault { id: Some(request), fault, era },
            other => other,
        }
    }

    /// The scopes that the token lacks some of.
    pub(super) fn missing_scopes(&self) -> Option<&[String]> {
        match self {
            Self::Fault { fault: Fault::InsufficientScope { required }, .. } => Some(required),
            _ => None,
        }
    }
}

impl From<Fault> for HttpError {
    /// An error outside of a request of the protocol.
    fn from(fault: Fault) -> Self {
        Self::Fault { id: None, fault, era: Era::Legacy }
    }
}

impl From<LimitReached> for HttpError {
    fn from(reached: LimitReached) -> Self {
        Fault::from(reached).into()
    }
}

impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}

impl From<LoginProblem> for HttpError {
    fn from(problem: LoginProblem) -> Self {
        let status = match &problem {
            LoginProblem::Refused(_) | LoginProblem::Unknown(_) | LoginProblem::NoClient(_) => {
                StatusCode::BAD_REQUEST
            }
            LoginProblem::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, problem.to_string()).into()
    }
}

impl From<login::Problem> for HttpError {
    fn from(problem: login::Problem) -> Self {
        Self::Login(problem)
    }
}

/// The status of an error of a login. Clients get another one in some cases (RFC 6749, section
/// 5.2).
fn login_status(problem: &login::Problem) -> StatusCode {
    use login::Problem;

    match problem {
        Problem::Refused(ErrorCode::AccessDenied, _) => StatusCode::FORBIDDEN,
        Problem::Refused(..) => StatusCode::BAD_REQUEST,
        Problem::Limited(_) | Problem::Busy(FetchLimit::Address, _) => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Problem::Busy(..) | Problem::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn login_retry_after(problem: &login::Problem) -> Option<Duration> {
    use login::Problem;

    match problem {
        Problem::Limited(after) | Problem::Busy(_, after) | Problem::Unavailable(after) => {
            Some(*after)
        }
        Problem::Refused(..) => None,
    }
}

/// The HTTP status of a fault. Errors of well-formed requests are a 200 with a JSON-RPC
/// error, except where 2026-07-28 requires a status (Streamable HTTP: Protocol Version
/// Header, Server Validation).
fn fault_status(fault: &Fault, era: Era) -> StatusCode {
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

/// The HTTP status of a fault where no JSON-RPC message says more.
fn http_status(fault: &Fault) -> StatusCode {
    match fault {
        Fault::MethodNotFound(_) | Fault::ResourceNotFound { .. } => StatusCode::NOT_FOUND,
        Fault::InvalidParams { .. } => StatusCode::BAD_REQUEST,
        Fault::TokenExpired => StatusCode::UNAUTHORIZED,
        Fault::Relayed { .. } => StatusCode::BAD_GATEWAY,
        Fault::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        Fault::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        Fault::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        other => fault_status(other, Era::Legacy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_success_for_no_format_but_json_rpc() {
        for (fault, status) in [
            (Fault::Internal(String::new()), 500),
            (Fault::Unavailable(String::new()), 503),
            (Fault::TokenExpired, 401),
            (Fault::TimedOut { limit: Duration::ZERO }, 504),
            (Fault::invalid_params("x"), 400),
            (Fault::MethodNotFound("x".into()), 404),
            (Fault::TooMany("x".into()), 429),
            (Fault::InsufficientScope { required: Vec::new() }, 403),
        ] {
            let is_reported = matches!(status, 429 | 403);
            let error = HttpError::from(fault);
            assert_eq!(error.status().as_u16(), status, "{error:?}");
            assert_eq!(error.json_rpc_status() == StatusCode::OK, !is_reported, "{error:?}");
        }
    }
}
