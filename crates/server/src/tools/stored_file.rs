//! [`StoredFile`]: a file in the results of `download_url` and `check_upload`.

use larder_store::store::Entry;
use schemars::JsonSchema;
use serde::Serialize;

/// A stored file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredFile {
    /// The URI of the resource.
    pub(super) uri: String,
    /// The name of the file.
    pub(super) name: String,
    /// The media type.
    pub(super) mime_type: String,
    /// The size in bytes.
    pub(super) size: u64,
    /// The SHA-256 of the content, such as sha-256:9f86….
    pub(super) digest: String,
}

impl StoredFile {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            uri: entry.uri.to_string(),
            name: entry.name.clone(),
            mime_type: entry.mime_type.clone(),
            size: entry.size,
            digest: format!("sha-256:{}", entry.sha256),
        }
    }
}
