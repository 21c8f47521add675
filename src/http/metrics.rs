//! Where Prometheus looks: a listener of its own, because nobody is asked who
//! they are there.

use std::sync::Arc;

use axum::{Router, response::IntoResponse, routing};
use http::header;

/// `/metrics`, with whatever `render` says at the time.
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
