//! Streamable HTTP: the only user of axum. The routes and the order of what
//! stands before them are here, in one view.

mod accept;
mod body;
mod endpoint;
mod guard;
mod legacy;
mod modern;
mod refusal;
mod serve;
mod sse;

use std::{sync::Arc, time::Duration};

use axum::{Router, middleware, routing};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

pub use guard::AllowedHosts;
pub use serve::{ServeLimits, serve};

use crate::{
    dispatch::Dispatcher,
    era::{Legacy, Modern},
};

/// How the endpoint behaves.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The one path of the protocol.
    pub path: String,
    /// The most that a request's body may have, in bytes.
    pub body_bytes: usize,
    /// How long a client may take to send the next piece of a body.
    pub body_timeout: Duration,
    /// How long a call may take before its answer becomes a stream.
    pub promote_after: Duration,
    /// How long a stream is silent before a comment keeps it open.
    pub keep_alive: Duration,
    /// When a client whose connection was lost should come back.
    pub retry: Duration,
    /// Who may be called by which name, and from which pages.
    pub hosts: AllowedHosts,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            body_bytes: 32 << 20,
            body_timeout: Duration::from_secs(30),
            promote_after: Duration::from_millis(200),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            hosts: AllowedHosts::default(),
        }
    }
}

/// What the endpoint works with.
pub(crate) struct Endpoint {
    pub(crate) options: HttpOptions,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) legacy: Arc<Legacy>,
    pub(crate) modern: Modern,
    /// Cancelled when the server stops: ends the streams that would not end
    /// by themselves.
    pub(crate) closing: CancellationToken,
}

/// The endpoint as a router of its own, to be served or nested.
pub(crate) fn router(endpoint: Arc<Endpoint>) -> Router {
    let path = endpoint.options.path.clone();
    let methods = routing::post(endpoint::post)
        .get(endpoint::get)
        .delete(endpoint::delete)
        .fallback(endpoint::other_method);
    let guard = middleware::from_fn_with_state(Arc::clone(&endpoint), guard::check);
    Router::new()
        .route(&path, methods)
        .fallback(endpoint::other_path)
        // The last one added comes first: a panic anywhere is an answer, then
        // names are checked before anything of the request is read.
        .layer(guard)
        .layer(CatchPanicLayer::custom(refusal::panicked))
        .with_state(endpoint)
}
