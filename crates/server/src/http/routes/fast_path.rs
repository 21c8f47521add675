//! Serves the endpoint without a router.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request, response::Response};
use futures_util::future::{BoxFuture, FutureExt};
use tower::Service;

use super::pipeline;
use crate::http::{Endpoint, route::Route};

/// Passes requests for the endpoint's path directly to the endpoint, and other requests to
/// the router. A router would copy its routes and record the match for each request.
#[derive(Clone)]
pub struct FastPath {
    /// The endpoint's route.
    pub(super) route: Arc<Route>,
    pub(super) endpoint: Arc<Endpoint>,
    /// Serves all other paths.
    pub(super) router: Router,
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
        if *request.uri().path() != *self.route.path {
            return self.router.call(request).boxed();
        }

        let route = Arc::clone(&self.route);
        let endpoint = Arc::clone(&self.endpoint);
        // The future is large, so it is boxed in place.
        Box::pin(async move { Ok(pipeline::serve(&route, &endpoint, request).await) })
    }
}
