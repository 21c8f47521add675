//! Content that is fetched for each read: files, directories and web pages.

mod addresses;
mod file;
mod sniff;
mod web;

pub use file::{DirectoryResource, FileResource};
pub use web::HttpResource;
