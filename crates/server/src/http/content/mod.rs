//! Stored content over HTTP, without MCP: for scripts, browsers and sandboxes.

mod coding;
pub(super) mod conditions;
mod disposition;
mod download;
mod link;
mod media_type;
mod once;
mod range;
mod representation;
mod resources;
mod upload;
mod upload_page;

use std::sync::Arc;

use axum::{Router, routing};

use super::{Endpoint, RESOURCES_PATH, UPLOADS_PATH};
use crate::content_link::{DOWNLOAD_PATH, ONCE_PATH, UPLOAD_PATH};

/// The routes of content, if it is offered.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    if !endpoint.options().content {
        return Router::new();
    }

    Router::new()
        .route(RESOURCES_PATH, routing::any(resources::handle))
        .route(&format!("{UPLOADS_PATH}/{{id}}"), routing::any(resources::handle_upload))
        .route(&format!("{DOWNLOAD_PATH}/{{*rest}}"), routing::any(download::handle))
        .route(&format!("{ONCE_PATH}/{{token}}"), routing::any(once::handle))
        .route(&format!("{UPLOAD_PATH}/{{*rest}}"), routing::any(upload::handle))
}
