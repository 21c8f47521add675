//! The way to the endpoint that goes through no router.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request, response::Response};
use futures_util::future::{BoxFuture, FutureExt};
use tower::Service;

use super::{Endpoint, pipeline};

/// A router that is not asked for the endpoint's own path: for each request it
/// would copy routes and note what it matched.
#[derive(Clone)]
pub(crate) struct FastPath {
    pub(super) path: Arc<str>,
    pub(super) endpoint: Arc<Endpoint>,
    /// What lies elsewhere.
    pub(super) router: Router,
}

impl Service<Request> for FastPath {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router always is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if *request.uri().path() != *self.path {
            return self.router.call(request).boxed();
        }
        let endpoint = Arc::clone(&self.endpoint);
        // Made where it stays: it is large.
        Box::pin(async move { Ok(pipeline::fast_path(endpoint, request).await) })
    }
}
