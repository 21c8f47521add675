//! What clients in browsers may send and see (WHATWG Fetch, 3.2: CORS). Which
//! origins may call at all is decided before, in `guard`; a request of no page
//! is left as it is.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};

/// What a page may read of an answer, beside what it always may.
const EXPOSED: &str =
    "mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after";
/// How many seconds a browser remembers what it was told.
const REMEMBERED: &str = "3600";
const ASKS_FOR_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Tells a page what it may see of an answer, refusals among them.
pub(super) fn tell_page(asked: &HeaderMap, response: &mut Response) {
    let Some(origin) = asked.get(header::ORIGIN) else { return };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// The answer to a page that asks what it may send, which bears no token.
pub(super) fn preflight(head: &Parts) -> Option<Response> {
    let asked = &head.headers;
    let is_preflight = head.method == Method::OPTIONS
        && asked.contains_key(header::ORIGIN)
        && asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
    // Parameters are mirrored into headers of any name (Mcp-Param-…), so there is no list of them.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        headers.append(header::VARY, HeaderValue::from_static("access-control-request-headers"));
    }
    // From a page of the web to a server on this machine.
    if asked.contains_key(ASKS_FOR_PRIVATE) {
        headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
    }
    Some(response)
}
