//! The response to content that was stored.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use larder_store::store::Entry;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::http::{RESOURCES_PATH, conditions::entity_tag, head::Head, response::json_response};

/// 201 for a new resource, 200 for one that was replaced.
pub(super) fn response(entry: &Entry, head: &Head) -> Response {
    let described = json!({
        "uri": entry.uri.as_str(),
        "name": entry.name,
        "mimeType": entry.mime_type,
        "size": entry.size,
        "sha256": entry.sha256,
        "revision": entry.revision,
        "expiresAt": entry.expires.to_string(),
    });

    let status = if entry.revision == 1 { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json_response(status, format!("{described}\n").into());

    let uri = utf8_percent_encode(entry.uri.as_str(), NON_ALPHANUMERIC);
    let path = RESOURCES_PATH.trim_start_matches('/');
    // The path is relative to the root, because a proxy may add a prefix to all paths.
    let root = "../".repeat(head.path().matches('/').count().saturating_sub(1));

    for (name, value) in
        [(header::LOCATION, format!("{root}{path}?uri={uri}")), (header::ETAG, entity_tag(entry))]
    {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
