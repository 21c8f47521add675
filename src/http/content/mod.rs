//! Stored content over HTTP, without MCP: for scripts, browsers and sandboxes.

mod conditions;
mod disposition;
mod download;
mod link;
mod once;
mod range;
mod representation;
mod resources;

use std::sync::Arc;

use axum::{Router, routing};

use super::Endpoint;
use crate::content_link::{DOWNLOAD_PATH, ONCE_PATH};

/// The path at which callers with a bearer token read and delete resources.
pub(crate) const RESOURCES_PATH: &str = "/resources";

/// The routes of content, if it is offered.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    if !endpoint.options().content {
        return Router::new();
    }
    Router::new()
        .route(RESOURCES_PATH, routing::any(resources::handle))
        .route(&format!("{DOWNLOAD_PATH}/{{*rest}}"), routing::any(download::handle))
        .route(&format!("{ONCE_PATH}/{{token}}"), routing::any(once::handle))
}
