//! Stored content over HTTP, without MCP: for scripts, browsers and sandboxes.

mod conditions;
mod file_name;
mod range;
mod representation;
mod resources;

use std::sync::Arc;

use axum::{Router, routing};

use super::Endpoint;

/// The path at which callers with a bearer token read and delete resources.
pub(crate) const RESOURCES_PATH: &str = "/resources";

/// The routes of content, if it is offered.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    if !endpoint.options().content {
        return Router::new();
    }
    Router::new().route(RESOURCES_PATH, routing::any(resources::handle))
}
