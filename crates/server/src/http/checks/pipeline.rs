//! The checks before a request is handled, in order: request ID and metrics; Host; and, on
//! the endpoint's path, Origin, CORS, content length, bearer token and admission. Only then is
//! the body read and parsed. A panic behind the Host check becomes a response.
//!
//! These are functions, not layers: each layer would clone the inner ones for every
//! request.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::future::{BoxFuture, FutureExt, ready};
use http::{Method, request::Parts};

use super::{bearer, cors, host_check, instrument};
use crate::http::{
    Endpoint, error,
    mcp::{body, endpoint},
};

/// Applies to every path. The inner service catches panics. What it does is boxed, because it is
/// large, and would be moved into the future of each step around it.
async fn every_path<'a>(
    endpoint: &Endpoint,
    request: Request,
    inner: impl FnOnce(Request) -> BoxFuture<'a, Response>,
) -> Response {
    instrument::request(endpoint, request, |request| match host_check::host(endpoint, &request) {
        Ok(()) => inner(request),
        Err(error) => ready(error.into_response()).boxed(),
    })
    .await
}

/// The checks for every path, as a layer of a router.
pub(in crate::http) async fn layer(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
    next: Next,
) -> Response {
    every_path(&endpoint, request, |request| next.run(request).boxed()).await
}

/// The endpoint's path, without a router.
pub(in crate::http) async fn fast_path(endpoint: Arc<Endpoint>, request: Request) -> Response {
    every_path(&endpoint, request, |request| {
        Box::pin(async {
            let served = pin!(serve_endpoint(&endpoint, request));
            // After a panic nothing of the request is used again.
            AssertUnwindSafe(served).catch_unwind().await.unwrap_or_else(error::panic_response)
        })
    })
    .await
}

/// The endpoint's path, in a router.
pub(in crate::http) async fn endpoint_path(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    serve_endpoint(&endpoint, request).await
}

async fn serve_endpoint(endpoint: &Endpoint, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(error) = host_check::origin(endpoint, &head.headers) {
        return error.into_response();
    }

    let mut response = match cors::preflight(&head, "GET, POST, DELETE") {
        Some(response) => response,
        None => admit(endpoint, &head, body).await,
    };

    cors::add_headers(&head.headers, &mut response);
    response
}

/// Authenticates a request that is not a preflight and dispatches it by method.
async fn admit(endpoint: &Endpoint, head: &Parts, body: Body) -> Response {
    if let Err(error) = body::check_content_length(endpoint, &head.headers) {
        return error.into_response();
    }

    // The permit is held until there is a response.
    let (identity, permit) = match bearer::authenticate(endpoint, head).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };

    let headers = &head.headers;
    let mut response = match head.method {
        Method::POST => endpoint::post(endpoint, headers, body, identity, &permit).await,
        Method::GET => endpoint::get(endpoint, headers, &identity).await,
        Method::DELETE => endpoint::delete(endpoint, headers, &identity).await,
        _ => endpoint::other_method(&head.method),
    };

    bearer::challenge(endpoint, &mut response);
    response
}

/// Any other path.
pub(in crate::http) async fn other_path(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    match host_check::origin(&endpoint, request.headers()) {
        Ok(()) => endpoint::other_path(&endpoint),
        Err(error) => error.into_response(),
    }
}
