//! Content that comes from elsewhere each time it is read: files, directories
//! and pages of the web.

#[cfg(feature = "web")]
mod addresses;
mod file;
mod sniff;
#[cfg(feature = "web")]
mod web;

pub use file::{DirectoryResource, FileResource};
#[cfg(feature = "web")]
pub use web::HttpResource;
