//! A router that keeps something alive as long as it exists.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request};
use tower::{Service, layer::layer_fn};

/// The router, which holds the owner.
pub fn owned<T: Send + Sync + 'static>(router: Router, owner: Arc<T>) -> Router {
    router.layer(layer_fn(move |service| Owned { service, owner: Arc::clone(&owner) }))
}

struct Owned<S, T> {
    service: S,
    owner: Arc<T>,
}

impl<S: Clone, T> Clone for Owned<S, T> {
    fn clone(&self) -> Self {
        Self { service: self.service.clone(), owner: Arc::clone(&self.owner) }
    }
}

impl<S: Service<Request>, T> Service<Request> for Owned<S, T> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        self.service.call(request)
    }
}
