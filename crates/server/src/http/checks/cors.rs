//! CORS headers for clients in browsers (WHATWG Fetch, 3.2). `host_check` decides which
//! origins may call. Requests without an Origin are not changed, except where every page may read.

use axum::response::Response;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use crate::http::{head::Head, response::empty, surface::Cors};

/// The response headers that a page may read besides the safelisted ones.
const EXPOSED_HEADERS: &str = "mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after, etag, content-range, content-disposition, accept-ranges, repr-digest, location, upload-complete, upload-expires, upload-length, upload-limit, upload-offset, tus-extension, tus-max-size, tus-resumable, tus-version";
/// How long a browser caches a preflight response, in seconds.
const MAX_AGE: &str = "3600";
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// The headers that clients send for public documents and tokens.
const OPEN_HEADERS: &str = "mcp-protocol-version, accept, content-type";

/// Adds the CORS headers to a response, errors included. `origin` is that of the request.
pub(in crate::http) fn add_headers(
    cors: Cors,
    origin: Option<HeaderValue>,
    response: &mut Response,
) {
    let headers = response.headers_mut();
    match (cors, origin) {
        (Cors::Allowed, Some(origin)) => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.append(header::VARY, HeaderValue::from_static("origin"));
            let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
        (Cors::Any, _) => {
            let any = HeaderValue::from_static("*");
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
        }
        (Cors::Allowed | Cors::None, _) => {}
    }
}

/// The response to a preflight request, which carries no token. None for other requests.
/// `methods` lists those of the path.
pub(in crate::http) fn preflight(cors: Cors, head: &Head, methods: &str) -> Option<Response> {
    if head.method() != Method::OPTIONS {
        return None;
    }

    match cors {
        Cors::None => None,
        Cors::Allowed => allowed_preflight(head, methods),
        Cors::Any => {
            let mut response = empty(StatusCode::NO_CONTENT);
            let names = HeaderValue::from_static(OPEN_HEADERS);
            response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
            allow_methods(&mut response, methods);
            Some(response)
        }
    }
}

fn allowed_preflight(head: &Head, methods: &str) -> Option<Response> {
    if !head.has(&header::ORIGIN) || !head.has(&header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }

    let mut response = empty(StatusCode::NO_CONTENT);
    allow_methods(&mut response, methods);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));

    // Parameters are mirrored into headers of any name (`Mcp-Param-…`), so all requested
    // names are allowed.
    if let Some(names) = head.first(&header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        headers.append(header::VARY, HeaderValue::from_static("access-control-request-headers"));
    }

    // Allows a page on the web to call a server on this machine.
    if head.has(&REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }

    Some(response)
}

fn allow_methods(response: &mut Response, methods: &str) {
    if let Ok(methods) = HeaderValue::try_from(methods) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
}
