//! Calls of the page: messages of MCP, with the identity of the session.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};

use super::{access::admit, login::own_page};
use crate::http::{Endpoint, mcp::body, mcp::endpoint};

/// One request of 2026-07-28 and its response, as at the MCP endpoint. Always one JSON message:
/// a stream would outlive the end of its session.
pub(super) async fn call(State(state): State<Arc<Endpoint>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    if let Err(response) = own_page(&state, &head) {
        return *response;
    }
    if let Err(error) = body::check_content_length(&state, &head.headers) {
        return error.into_response();
    }

    let caller = match admit(&state, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };

    head.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    endpoint::post_modern(&state, &head.headers, body, caller.identity, &caller.permit).await
}
