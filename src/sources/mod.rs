//! Content that comes from elsewhere each time it is read: files, directories
//! and pages of the web.

mod addresses;
mod file;
mod sniff;
mod web;

pub use file::{DirectoryResource, FileResource};
pub use web::HttpResource;
