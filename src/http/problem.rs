//! Errors of content over HTTP as problem documents (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::error::{ErrorText, json_response, set_retry_after};
use crate::{handler::log_internal, store::StoreError};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An error with a status and a text for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        log_internal(&error);
        let status = match &error {
            error if error.is_not_found() => StatusCode::NOT_FOUND,
            StoreError::ReadOnly { .. } => StatusCode::FORBIDDEN,
            StoreError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            StoreError::Busy(_) | StoreError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            StoreError::Corrupt { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail } = self;
        let mut response = json_response(status, document(status, &detail).into());
        response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            set_retry_after(&mut response, std::time::Duration::from_secs(1));
        }
        response
    }
}

/// The same response, with a problem document in place of a JSON-RPC error.
pub(super) fn instead_of_json_rpc(mut response: Response) -> Response {
    let Some(ErrorText(detail)) = response.extensions_mut().remove() else { return response };
    let document = document(response.status(), &detail);
    response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.map(|_| document.into())
}

/// The status says all that a program can act on, so the type is `about:blank`.
fn document(status: StatusCode, detail: &str) -> String {
    let title = status.canonical_reason().unwrap_or_default();
    json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail })
        .to_string()
}
