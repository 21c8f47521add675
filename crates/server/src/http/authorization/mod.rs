//! The authorization server over HTTP (`[auth] mode = "login"`), below the endpoint's path: pages
//! for browsers, and JSON for clients.

mod clients;
mod pages;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::to_bytes,
    extract::{FromRequestParts, Request},
    response::{IntoResponse, Response},
    routing,
};
use http::{StatusCode, header, request::Parts};
use larder_login::{ErrorCode, FetchLimit, LoginServer, Problem};
use serde_json::json;

use super::{
    Endpoint,
    checks::instrument::peer,
    error::{HttpError, json_response, set_retry_after},
};

/// The longest time for a form or a registration.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Where clients look for the metadata (RFC 8414, section 3), and below which path.
const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";

/// The routes of the authorization server, if there is one.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    let Some(login) = &endpoint.login else { return Router::new() };
    let base = format!("{}/login", endpoint.options().path.trim_end_matches('/'));

    let mut router = Router::new()
        .route(&format!("{base}/authorize"), routing::get(pages::authorize))
        .route(&format!("{base}/callback"), routing::get(pages::callback))
        .route(&format!("{base}/consent"), routing::get(pages::ask).post(pages::decide))
        .route(&format!("{base}/token"), routing::post(clients::token).options(clients::preflight))
        .route(
            &format!("{base}/register"),
            routing::post(clients::register).options(clients::preflight),
        )
        .route(
            &format!("{base}/revoke"),
            routing::post(clients::revoke).options(clients::preflight),
        )
        .route(&format!("{base}/keys"), routing::get(clients::keys).options(clients::preflight));

    let public_path = login.base_url().splitn(4, '/').nth(3).unwrap_or_default();
    let mut paths = vec![
        WELL_KNOWN.to_owned(),
        format!("{WELL_KNOWN}/{public_path}").trim_end_matches('/').to_owned(),
        format!("{WELL_KNOWN}{}", endpoint.options().path.trim_end_matches('/')),
    ];
    paths.sort();
    paths.dedup();

    for path in paths {
        let metadata = routing::get(clients::metadata).options(clients::preflight);
        router = router.route(&path, metadata);
    }
    router
}

/// The server that these routes exist for.
struct Login(Arc<LoginServer>);

impl FromRequestParts<Arc<Endpoint>> for Login {
    type Rejection = StatusCode;

    async fn from_request_parts(
        _: &mut Parts,
        endpoint: &Arc<Endpoint>,
    ) -> Result<Self, StatusCode> {
        endpoint.login.clone().map(Self).ok_or(StatusCode::NOT_FOUND)
    }
}

/// The bounded body of a request, or the response that says why there is none.
async fn body(endpoint: &Endpoint, request: Request, max: usize) -> Result<Vec<u8>, Box<Response>> {
    let (head, body) = request.into_parts();
    let Some(_slot) = endpoint.forms.take(peer(&head.extensions)) else {
        let text = "Too many forms of this address are in progress. Try again shortly.";
        let mut response =
            error_response(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TemporarilyUnavailable, text);
        set_retry_after(&mut response, Duration::from_secs(1));
        return Err(Box::new(response));
    };

    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, max)).await;
    match read {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => {
            let text = format!("The body is over {max} bytes, or incomplete.");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Err(Box::new(error_response(status, ErrorCode::InvalidRequest, &text)))
        }
        Err(_) => Err(Box::new(HttpError::TooSlow.into_response())),
    }
}

fn error_response(status: StatusCode, code: ErrorCode, text: &str) -> Response {
    let error = json!({ "error": code.as_str(), "error_description": text }).to_string();
    json_response(status, error.into())
}

pub(super) fn status(problem: &Problem) -> StatusCode {
    match problem {
        Problem::Refused(ErrorCode::AccessDenied, _) => StatusCode::FORBIDDEN,
        Problem::Refused(..) => StatusCode::BAD_REQUEST,
        Problem::Limited(_) | Problem::Busy(FetchLimit::Address, _) => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Problem::Busy(..) | Problem::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// When to try again.
pub(super) fn add_retry_after(problem: &Problem, response: &mut Response) {
    if let Problem::Limited(after) | Problem::Busy(_, after) | Problem::Unavailable(after) = problem
    {
        set_retry_after(response, *after);
    }
}

/// Whether a client shows credentials, which none of ours has.
fn has_credentials(headers: &http::HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION)
}
