//! Errors in the format of a surface. This is the only place that writes them.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use larder_login::{ErrorCode, Problem};
use larder_protocol::Fault;
use serde_json::json;

use super::{
    error::HttpError,
    pages::{escape, page, sandboxed_page},
    problem,
    response::{json_response, set_retry_after},
    surface::Format,
};
use crate::era::{Era, encode_error};

impl Format {
    /// The response to a refused request.
    pub(super) fn write(self, error: &HttpError, is_page_wanted: bool) -> Response {
        let mut response = match (self, error) {
            (_, HttpError::Page(error)) => page(error.status, error.title, &error.html),

            (Self::JsonRpc, error) if is_page_wanted => person_page(error),
            (Self::JsonRpc, error) => json_rpc(error),
            (Self::Link, error) if is_page_wanted => link_page(error),
            (Self::Problem | Self::Link, error) => problem_document(error),
            (Self::Message, error) => message(error),
            (Self::OAuth, error) => oauth(error),
            (Self::Page, error) => error_page(error),
        };

        if let HttpError::Problem(problem) = error {
            for (name, value) in &problem.headers {
                response.headers_mut().append(name, value.clone());
            }
        }
        if let HttpError::Method { allow, .. } = error
            && let Ok(allow) = HeaderValue::try_from(allow)
        {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        if let Some(after) = error.retry_after() {
            set_retry_after(&mut response, after);
        }
        response
    }
}

/// JSON-RPC without an ID for what is no message, readable by clients and people.
fn json_rpc(error: &HttpError) -> Response {
    let body: Body = match error {
        HttpError::Fault { id, fault, era } => encode_error(id.as_ref(), fault, *era).into(),
        HttpError::Panicked => {
            encode_error(None, &Fault::Internal(error.to_string()), Era::Legacy).into()
        }
        error => {
            let fault = Fault::InvalidRequest(error.to_string());
            encode_error(None, &fault, Era::Legacy).into()
        }
    };
    json_response(error.json_rpc_status(), body)
}

fn problem_document(error: &HttpError) -> Response {
    match error {
        HttpError::Problem(problem) => problem.document(),
        error => problem::plain(error.status(), &error.to_string()),
    }
}

fn message(error: &HttpError) -> Response {
    let body = json!({ "error": { "message": error.to_string() } });
    json_response(error.status(), body.to_string().into())
}

/// A page for the person who follows a link.
fn link_page(error: &HttpError) -> Response {
    let status = error.status();
    let title = match status {
        StatusCode::NOT_FOUND => "Nothing is here",
        status => status.canonical_reason().unwrap_or_default(),
    };
    sandboxed_page(status, title, &format!("<p>{}</p>", escape(&error.to_string())))
}

/// A page for the person whose browser asks for what is for clients.
fn person_page(error: &HttpError) -> Response {
    let status = error.status();
    match error {
        HttpError::Path(_) => page(
            status,
            "Nothing is here",
            "<p>This server has no page at this address.</p>\
             <p><a href=\"/\">What this server is</a></p>",
        ),
        error => {
            let title = status.canonical_reason().unwrap_or_default();
            page(status, title, &format!("<p>{}</p>", escape(&error.to_string())))
        }
    }
}

fn error_page(error: &HttpError) -> Response {
    let title = match error {
        HttpError::Login(problem) => login_title(problem),
        _ => "No login",
    };
    page(error.status(), title, &format!("<p>{}</p>", escape(&error.to_string())))
}

/// The title of a page that says why a login fails.
pub(super) fn login_title(problem: &Problem) -> &'static str {
    match problem {
        Problem::Refused(ErrorCode::AccessDenied, _) => "No access",
        Problem::Refused(..) => "No login",
        Problem::Limited(_) | Problem::Busy(..) | Problem::Unavailable(_) => "Not now",
    }
}

/// An error for a client (RFC 6749, section 5.2).
fn oauth(error: &HttpError) -> Response {
    let (code, status) = match error {
        HttpError::Login(Problem::Refused(code @ ErrorCode::InvalidClient, _)) => {
            (*code, StatusCode::UNAUTHORIZED)
        }
        HttpError::Login(Problem::Refused(code, _)) => (*code, StatusCode::BAD_REQUEST),
        HttpError::Login(_) | HttpError::TooManyForms => {
            (ErrorCode::TemporarilyUnavailable, error.status())
        }
        error => (ErrorCode::InvalidRequest, error.status()),
    };

    let body = json!({ "error": code.as_str(), "error_description": error.to_string() });
    let mut response = json_response(status, body.to_string().into());
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"larder\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
