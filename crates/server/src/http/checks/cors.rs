//! CORS headers for clients in browsers (WHATWG Fetch, 3.2). `host_check` decides which
//! origins may call. Requests without an Origin are not changed.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};

/// The response headers that a page may read besides the safelisted ones.
const EXPOSED_HEADERS: &str = "mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after, etag, content-range, content-disposition, accept-ranges, repr-digest, location, upload-complete, upload-expires, upload-length, upload-limit, upload-offset, tus-extension, tus-max-size, tus-resumable, tus-version";
/// How long a browser caches a preflight response, in seconds.
const MAX_AGE: &str = "3600";
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// Adds the CORS headers to a response, errors included.
pub(in crate::http) fn add_headers(request_headers: &HeaderMap, response: &mut Response) {
    let Some(origin) = request_headers.get(header::ORIGIN) else { return };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers
        .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
}

/// The response to a preflight request, which carries no token. None for other requests.
/// `methods` lists those of the path.
pub(in crate::http) fn preflight(head: &Parts, methods: &'static str) -> Option<Response> {
    let request_headers = &head.headers;
    let is_preflight = head.method == Method::OPTIONS
        && request_headers.contains_key(header::ORIGIN)
        && request_headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }

    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static(methods);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));

    // Parameters are mirrored into headers of any name (`Mcp-Param-…`), so all requested
    // names are allowed.
    if let Some(names) = request_headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        headers.append(header::VARY, HeaderValue::from_static("access-control-request-headers"));
    }

    // Allows a page on the web to call a server on this machine.
    if request_headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }

    Some(response)
}
