//! Content that is fetched for each read: files, directories and web pages.

mod file;
mod file_ranges;
mod sniff;
mod web;

pub use file::{DirectoryResource, FileResource};
pub(crate) use sniff::is_text;
pub use web::HttpResource;
