//! Stored content over HTTP, without MCP: for scripts, browsers and sandboxes.

mod file_name;
mod range;
mod representation;
mod resources;

use std::sync::Arc;

use axum::{Router, routing};

use super::{Endpoint, RESOURCES_PATH, UPLOADS_PATH};

/// The routes of content, if it is offered.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    if !endpoint.options().content {
        return Router::new();
    }
    Router::new()
        .route(RESOURCES_PATH, routing::any(resources::handle))
        .route(&format!("{UPLOADS_PATH}/{{id}}"), routing::any(resources::handle_upload))
}
