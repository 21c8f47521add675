//! What a request meets before anything is done for it, in one view and in
//! this order: it is named and measured; a panic anywhere behind is an answer;
//! Host; on the endpoint's own path also Origin, what pages are told of it
//! (preflights among it), size and bearer. Only then is the body read and
//! parsed.
//!
//! Functions rather than layers: each layer would clone all that lie within
//! it, for every request.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, request::Parts};
use tower::{ServiceExt, service_fn};
use tower_http::catch_panic::CatchPanic;

use super::{Endpoint, bearer, body, cors, endpoint, error, host_check, instrument};

/// Of every path. What lies behind this catches panics.
async fn every_path(
    endpoint: &Endpoint,
    request: Request,
    behind: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    instrument::request(endpoint, request, async |request| {
        match host_check::host(endpoint, &request) {
            Ok(()) => behind(request).await,
            Err(error) => error.into_response(),
        }
    })
    .await
}

/// Of every path, as a layer of a router.
pub(super) async fn layer(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
    next: Next,
) -> Response {
    every_path(&endpoint, request, async |request| next.run(request).await).await
}

/// Of the endpoint's path, without a router.
pub(super) async fn fast_path(endpoint: Arc<Endpoint>, request: Request) -> Response {
    every_path(&endpoint, request, async |request| {
        let serve = service_fn(|request| {
            let state = State(Arc::clone(&endpoint));
            async { Ok::<_, Infallible>(endpoint_path(state, request).await) }
        });
        CatchPanic::custom(serve, error::panicked).oneshot(request).await.into_response()
    })
    .await
}

/// Of the endpoint's path.
pub(super) async fn endpoint_path(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    if let Err(error) = host_check::origin(&endpoint, &head.headers) {
        return error.into_response();
    }
    let mut response = match cors::preflight(&head) {
        Some(response) => response,
        None => admit(&endpoint, &head, body).await,
    };
    cors::tell_page(&head.headers, &mut response);
    response
}

/// Of what does not only ask what it may send.
async fn admit(endpoint: &Endpoint, head: &Parts, body: Body) -> Response {
    if let Err(error) = body::check_size(endpoint, &head.headers) {
        return error.into_response();
    }
    let identity = match bearer::check(endpoint, head).await {
        Ok(identity) => identity,
        Err(refused) => return *refused,
    };
    let headers = &head.headers;
    let mut response = match head.method {
        Method::POST => endpoint::post(endpoint, headers, body, identity).await,
        Method::GET => endpoint::get(endpoint, headers, &identity).await,
        Method::DELETE => endpoint::delete(endpoint, headers, &identity).await,
        _ => endpoint::other_method(&head.method),
    };
    bearer::challenge(endpoint, &mut response);
    response
}

/// Somewhere else.
pub(super) async fn other_path(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    match host_check::origin(&endpoint, request.headers()) {
        Ok(()) => endpoint::other_path(&endpoint),
        Err(error) => error.into_response(),
    }
}
