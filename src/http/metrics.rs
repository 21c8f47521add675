//! The endpoint for Prometheus. It has its own listener, because it needs no
//! authentication.

use std::sync::Arc;

use axum::{Router, response::IntoResponse, routing};
use http::header;

/// A router with `/metrics`, which responds with the output of `render`.
pub fn metrics_router<R, F>(render: R) -> Router
where
    R: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = String> + Send,
{
    let render = Arc::new(render);
    let metrics = move || {
        let render = Arc::clone(&render);
        async move {
            let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (headers, render().await).into_response()
        }
    };
    Router::new().route("/metrics", routing::get(metrics))
}
