//! Streamable HTTP: the only user of axum. The routes are here; what stands
//! before them, in its order, is in `gate`.

mod accept;
mod bearer;
mod body;
mod cors;
mod endpoint;
mod error;
mod fast_path;
mod headers;
mod health;
mod host_check;
mod instrument;
mod legacy;
mod metrics;
mod modern;
mod overload;
mod pipeline;
mod post;
mod serve;
mod sse;
mod tls;
mod well_known;

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwap, Guard};
use axum::{Router, middleware, routing};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) use health::{OPEN_PATHS, Readiness};
pub use host_check::AllowedHosts;
pub use metrics::metrics_router;
pub use serve::{ServeLimits, serve};
pub use tls::{Certificate, CertificateError};
pub use well_known::Protected;

use fast_path::FastPath;

use crate::{
    auth::Authenticator,
    clock::Clock,
    dispatch::Dispatcher,
    era::{Legacy, Modern},
    random::Random,
};

/// How the endpoint behaves.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The one path of the protocol.
    pub path: String,
    /// The most that a request's body may have, in bytes.
    pub body_bytes: usize,
    /// The most JSON values that a request's body may have, at every depth.
    pub body_values: usize,
    /// How long a client may take to send the next piece of a body.
    pub body_timeout: Duration,
    /// How long a call may take before its answer becomes a stream.
    pub promote_after: Duration,
    /// Whether answers are always one JSON message and never a stream. What a
    /// call says before its end is not sent then, and it cannot ask its client
    /// within a session. Streams that a client opens to listen stay streams.
    pub json_response: bool,
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
            body_values: 200_000,
            body_timeout: Duration::from_secs(30),
            promote_after: Duration::from_millis(200),
            json_response: false,
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            hosts: AllowedHosts::default(),
        }
    }
}

/// What the endpoint works with.
pub(crate) struct Endpoint {
    /// Replaced when the configuration changes.
    pub(crate) options: Arc<ArcSwap<HttpOptions>>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) legacy: Arc<Legacy>,
    pub(crate) modern: Modern,
    pub(crate) clock: Arc<dyn Clock>,
    /// Finds out who calls.
    pub(crate) authenticator: Arc<Authenticator>,
    /// How clients find out where to get a token, if there is such a place.
    pub(crate) protected: Option<Protected>,
    /// Cancelled when the server stops: ends the streams that would not end
    /// by themselves.
    pub(crate) closing: CancellationToken,
    /// Whether what it works with is there.
    pub(crate) readiness: Readiness,
    /// For names of requests.
    pub(crate) random: Random,
}

impl Endpoint {
    fn options(&self) -> Guard<Arc<HttpOptions>> {
        self.options.load()
    }
}

/// The endpoint with all that a server by itself has beside it: probes, which
/// come under any name.
pub(crate) fn service(endpoint: Arc<Endpoint>) -> FastPath {
    let probes = health::routes().with_state(Arc::clone(&endpoint));
    let router = router(Arc::clone(&endpoint)).merge(probes);
    FastPath { path: endpoint.options().path.as_str().into(), endpoint, router }
}

/// The endpoint as a router of its own, to be served or nested.
pub(crate) fn router(endpoint: Arc<Endpoint>) -> Router {
    let path = endpoint.options().path.clone();
    let pipeline = middleware::from_fn_with_state(Arc::clone(&endpoint), pipeline::layer);
    Router::new()
        .route(&path, routing::any(pipeline::endpoint_path))
        .fallback(pipeline::other_path)
        // Public documents: pages of any origin may read them.
        .merge(well_known::routes(&endpoint))
        .layer((pipeline, CatchPanicLayer::custom(error::panicked)))
        .with_state(endpoint)
}
