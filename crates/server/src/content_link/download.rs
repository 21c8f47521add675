//! The claims of a link to download content.

use larder_oauth::Owner;
use larder_runtime::clock::Timestamp;
use larder_store::store::ResourceUri;
use serde::{Deserialize, Serialize};

use super::Claims;

/// One revision of one resource, for everyone who has the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Download {
    /// The owner of the resource, or of the sharing link that the URI names.
    #[serde(rename = "o")]
    pub(crate) owner: Owner,
    #[serde(rename = "u")]
    pub(crate) uri: ResourceUri,
    /// The only revision that the link gives.
    #[serde(rename = "r")]
    pub(crate) revision: u64,
    /// When the resource was created: a later one may have the same URI and revision.
    #[serde(rename = "c")]
    pub(crate) created: Timestamp,
    /// The size of the content in bytes.
    #[serde(rename = "s")]
    pub(crate) size: u64,
    #[serde(rename = "e")]
    pub(crate) expires: Timestamp,
    #[serde(rename = "d")]
    pub(crate) disposition: Disposition,
    /// Makes two links to the same content differ.
    #[serde(rename = "n")]
    pub(crate) nonce: String,
}

/// The way in which a browser treats content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disposition {
    /// Saves it.
    #[serde(rename = "a")]
    Attachment,
    /// Shows it, if its media type is safe to show.
    #[serde(rename = "i")]
    Inline,
}

impl Claims for Download {
    const PURPOSE: &'static str = "download GET";

    fn expires(&self) -> Timestamp {
        self.expires
    }
}
