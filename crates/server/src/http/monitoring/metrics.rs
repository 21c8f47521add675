//! The endpoints for operators, such as that for Prometheus. They have their own listener,
//! because they need no authentication.

use std::sync::Arc;

use axum::{Router, response::IntoResponse, routing};
use http::{StatusCode, header};
use serde_json::Value;

use crate::http::response::json_response;

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

/// A router with a path that responds with what `value` gives, for operators.
pub fn json_router(path: &str, value: impl Fn() -> Value + Send + Sync + 'static) -> Router {
    let value = Arc::new(value);
    Router::new().route(
        path,
        routing::get(
            move || async move { json_response(StatusCode::OK, value().to_string().into()) },
        ),
    )
}
