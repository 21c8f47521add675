//! What clients ask for: JSON, readable by pages of any origin, because nothing depends on
//! cookies.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_login::{ErrorCode, MAX_PARAMETER_BYTES, MAX_REGISTRATION, Problem};
use serde_json::{Value, json};

use super::{
    super::{Endpoint, checks::instrument::peer, error::json_response},
    Login, add_retry_after, body, has_credentials, status,
};

const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=300");
const FORM: &str = "application/x-www-form-urlencoded";

/// The metadata of the authorization server (RFC 8414).
pub(super) async fn metadata(Login(login): Login) -> Response {
    let mut response = answer(StatusCode::OK, &login.metadata());
    response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
    response
}

/// The public keys (RFC 7517).
pub(super) async fn keys(Login(login): Login) -> Response {
    match login.jwk_set().await {
        Ok(keys) => {
            let mut response = answer(StatusCode::OK, &keys);
            response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
            response
        }
        Err(problem) => refusal(&problem),
    }
}

/// Registers a client (RFC 7591).
pub(super) async fn register(
    Login(login): Login,
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    let peer = peer(request.extensions());
    let registration = match body(&endpoint, request, MAX_REGISTRATION).await {
        Ok(registration) => registration,
        Err(response) => return allow_any_origin(*response),
    };

    match login.register(&registration, peer) {
        Ok(registered) => answer(StatusCode::CREATED, &registered),
        Err(problem) => refusal(&problem),
    }
}

/// Gives tokens for a code or a refresh token.
pub(super) async fn token(
    Login(login): Login,
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    let peer = peer(request.extensions());
    let has_credentials = has_credentials(request.headers());
    let form = match form(&endpoint, request).await {
        Ok(form) => form,
        Err(response) => return *response,
    };

    match login.token(form, has_credentials, peer).await {
        Ok(tokens) => answer(StatusCode::OK, &tokens),
        Err(problem) => refusal(&problem),
    }
}

/// Revokes a token (RFC 7009).
pub(super) async fn revoke(
    Login(login): Login,
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    let peer = peer(request.extensions());
    let has_credentials = has_credentials(request.headers());
    let form = match form(&endpoint, request).await {
        Ok(form) => form,
        Err(response) => return *response,
    };

    match login.revoke(&form, has_credentials, peer).await {
        Ok(()) => answer(StatusCode::OK, &json!({})),
        Err(problem) => refusal(&problem),
    }
}

/// The form of a request, which must not be one that a page could send without a preflight as
/// something else.
async fn form(endpoint: &Endpoint, request: Request) -> Result<Vec<u8>, Box<Response>> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case(FORM) {
        let text = format!("The content type must be {FORM}.");
        return Err(Box::new(refusal(&Problem::Refused(ErrorCode::InvalidRequest, text))));
    }

    body(endpoint, request, MAX_PARAMETER_BYTES)
        .await
        .map_err(|response| Box::new(allow_any_origin(*response)))
}

/// Browsers send a preflight before JSON and the protocol version header.
pub(super) async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let names = HeaderValue::from_static("mcp-protocol-version, accept, content-type");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    let methods = HeaderValue::from_static("GET, POST");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    allow_any_origin(response)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    allow_any_origin(json_response(status, body.to_string().into()))
}

fn allow_any_origin(mut response: Response) -> Response {
    let any = HeaderValue::from_static("*");
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

/// An error of RFC 6749, section 5.2.
fn refusal(problem: &Problem) -> Response {
    let (code, text) = match problem {
        Problem::Refused(code, text) => (code.as_str(), text.clone()),
        Problem::Limited(_) | Problem::Busy(..) | Problem::Unavailable(_) => {
            (ErrorCode::TemporarilyUnavailable.as_str(), problem.to_string())
        }
    };

    let status = match problem {
        Problem::Refused(ErrorCode::InvalidClient, _) => StatusCode::UNAUTHORIZED,
        Problem::Refused(..) => StatusCode::BAD_REQUEST,
        _ => status(problem),
    };

    let mut response = answer(status, &json!({ "error": code, "error_description": text }));
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"larder\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    add_retry_after(problem, &mut response);
    response
}
