//! Serves the endpoint without a router.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request, response::Response};
use futures_util::future::{BoxFuture, FutureExt};
use tower::Service;

use crate::http::{Endpoint, checks::pipeline};

/// Passes requests for the endpoint's path directly to the endpoint, and other requests to
/// the router. A router would copy its routes and record the match for each request.
#[derive(Clone)]
pub struct FastPath {
    pub(in crate::http) path: Arc<str>,
    pub(in crate::http) endpoint: Arc<Endpoint>,
    /// Serves all other paths.
    pub(in crate::http) router: Router,
}

impl Service<Request> for FastPath {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if *request.uri().path() != *self.path {
            return self.router.call(request).boxed();
        }

        let endpoint = Arc::clone(&self.endpoint);
        // The future is large, so it is boxed in place.
        Box::pin(async move { Ok(pipeline::fast_path(endpoint, request).await) })
    }
}
