//! Parts of responses.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

/// A JSON response. It belongs to one caller and must not be cached on the way.
pub(super) fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A JSON response with this value.
pub(super) fn value_response(status: StatusCode, body: &Value) -> Response {
    json_response(status, body.to_string().into())
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    status.into_response()
}

/// Sets `Retry-After`, in whole seconds.
pub(super) fn set_retry_after(response: &mut Response, after: Duration) {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}
