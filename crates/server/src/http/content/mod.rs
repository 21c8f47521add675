//! Stored content over HTTP, without MCP: for scripts, browsers and sandboxes.

mod disposition;
pub(super) mod download;
mod link;
mod media_type;
pub(super) mod once;
mod range;
mod representation;
pub(super) mod resources;
pub(super) mod upload;
mod upload_page;

pub(super) use self::representation::add_safe_headers;
