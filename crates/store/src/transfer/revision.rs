//! [`Revision`]: the metadata of a revision in an export.

use std::sync::Arc;

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::{Entry, Kind, ResourceUri};

/// The metadata of a revision. Times are in milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::struct_field_names, reason = "these are the words of the store")]
pub(super) struct Revision {
    owner: Owner,
    uri: ResourceUri,
    revision: u64,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    mime_type: String,
    kind: Kind,
    size: u64,
    sha256: String,
    created: u64,
    updated: u64,
    expires: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<Arc<str>>,
}

impl From<&Entry> for Revision {
    fn from(entry: &Entry) -> Self {
        Self {
            owner: entry.owner.clone(),
            uri: entry.uri.clone(),
            revision: entry.revision,
            name: entry.name.clone(),
            title: entry.title.clone(),
            description: entry.description.clone(),
            mime_type: entry.mime_type.clone(),
            kind: entry.kind,
            size: entry.size,
            sha256: entry.sha256.clone(),
            created: entry.created.as_millis(),
            updated: entry.updated.as_millis(),
            expires: entry.expires.as_millis(),
            session: entry.session.clone(),
            origins: entry.origins.to_vec(),
        }
    }
}

impl From<Revision> for Entry {
    /// The entry without its blocks and lines, which follow from the content.
    fn from(revision: Revision) -> Self {
        Self {
            owner: revision.owner,
            uri: revision.uri,
            revision: revision.revision,
            name: revision.name,
            title: revision.title,
            description: revision.description,
            mime_type: revision.mime_type,
            kind: revision.kind,
            size: revision.size,
            lines: 0,
            sha256: revision.sha256,
            created: Timestamp::from_millis(revision.created),
            updated: Timestamp::from_millis(revision.updated),
            expires: Timestamp::from_millis(revision.expires),
            session: revision.session,
            origins: revision.origins.into(),
            blocks: Arc::default(),
            records: None,
        }
    }
}
