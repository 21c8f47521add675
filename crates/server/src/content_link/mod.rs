//! Signed links to content: anyone with the link may do what its token says, without other
//! credentials, until it expires. The token is in the URL and nothing is stored, so every
//! instance with the same keys accepts the links of the others.

mod base;
mod download;
mod file_name;
mod links;
mod once;
mod signer;
mod upload;
mod upload_links;

pub use self::{
    base::{BaseUrl, encode_segment},
    download::{Disposition, Download},
    file_name::file_name,
    links::{ContentLinks, DOWNLOAD_PATH, ONCE_PATH},
    once::Once,
    signer::{Claims, LinkSigner},
    upload::{Upload, UploadUse},
    upload_links::{RENEWAL, UPLOAD_PATH},
};

/// The response to every link that is not valid. It says nothing about why: links may be guessed
/// at.
pub(crate) const NOT_FOUND: &str = "Not found, expired or used; ask for a new link.";
