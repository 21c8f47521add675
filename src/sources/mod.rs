//! Content that is fetched for each read: files, directories and web pages.

mod file;
mod file_ranges;
mod sniff;
#[cfg(feature = "web")]
mod web;

pub use file::{DirectoryResource, FileResource};
#[cfg(feature = "http")]
pub(crate) use sniff::is_text;
#[cfg(feature = "web")]
pub use web::HttpResource;
