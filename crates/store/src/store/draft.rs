//! [`Draft`]: an entry before its commit, and how it is completed from its predecessor.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_records::RecordIndex;
use larder_runtime::clock::Timestamp;

use super::{Block, Entry, Kind, ResourceUri, Version, origins::union};

/// An entry without the fields that depend on its predecessor.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The resource's URI.
    pub uri: ResourceUri,
    /// The resource's owner.
    pub owner: Owner,
    /// Text or binary.
    pub kind: Kind,
    /// Size of the content in bytes.
    pub size: u64,
    /// Number of lines.
    pub lines: u64,
    /// SHA-256 of the content in hexadecimal.
    pub sha256: String,
    /// The block table.
    pub blocks: Arc<[Block]>,
    /// The index of the records.
    pub records: Option<Arc<RecordIndex>>,
    /// The servers behind this one that the content comes from.
    pub origins: Arc<[Arc<str>]>,
    /// The time of this write.
    pub now: Timestamp,
    /// How many revisions to store, this revision included; at least 1. Earlier revisions
    /// count towards the owner's quota, and are dropped, oldest first, where this revision
    /// would not fit.
    pub revisions: usize,
    /// How the content relates to an existing resource of the same URI.
    pub mode: WriteMode,
}

/// How new content relates to an existing resource of the same URI.
#[derive(Debug, Clone)]
pub enum WriteMode {
    /// Creates the resource, or replaces its content and metadata: the last
    /// write wins as a whole.
    Create {
        /// Short name.
        name: String,
        /// Title for display.
        title: Option<String>,
        /// Description of the content.
        description: Option<String>,
        /// The media type.
        mime_type: String,
        /// Time to live, from now on.
        ttl: Duration,
        /// The session that the resource ends with, if any.
        session: Option<Arc<str>>,
    },
    /// Replaces the content of an existing resource, and the metadata that is set.
    Update {
        /// A new name.
        name: Option<String>,
        /// A new title.
        title: Option<String>,
        /// A new description.
        description: Option<String>,
        /// A new media type.
        mime_type: Option<String>,
        /// A new time to live, from now on; without one, the expiry does not change.
        ttl: Option<Duration>,
        /// The version that is replaced; any version if `None`.
        replaced: Option<Version>,
    },
    /// Writes a revision as another store had it, with the number, times and metadata of the
    /// entry. Refused over a later revision.
    Restore(Arc<Entry>),
}

impl Draft {
    /// The complete entry, given its live predecessor. `None` in three cases: an update without a
    /// predecessor, an update of another version than it replaces, and a restored revision that
    /// is not later than the predecessor. Call it while the predecessor cannot change.
    pub fn apply_to(self, previous: Option<&Entry>) -> Option<Entry> {
        let metadata = self.mode.metadata(previous, self.kind, self.origins, self.now)?;

        Some(Entry {
            uri: self.uri,
            owner: self.owner,
            revision: metadata.revision,
            name: metadata.name,
            title: metadata.title,
            description: metadata.description,
            mime_type: metadata.mime_type,
            kind: self.kind,
            size: self.size,
            lines: self.lines,
            sha256: self.sha256,
            created: metadata.created,
            updated: metadata.updated,
            expires: metadata.expires,
            session: metadata.session,
            origins: metadata.origins,
            blocks: self.blocks,
            records: self.records,
        })
    }
}

/// The fields of an entry that depend on its mode and its predecessor.
struct EntryMetadata {
    revision: u64,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: String,
    created: Timestamp,
    updated: Timestamp,
    expires: Timestamp,
    session: Option<Arc<str>>,
    origins: Arc<[Arc<str>]>,
}

impl WriteMode {
    /// The metadata of content of this kind and these origins, written at `now`.
    fn metadata(
        self,
        previous: Option<&Entry>,
        kind: Kind,
        origins: Arc<[Arc<str>]>,
        now: Timestamp,
    ) -> Option<EntryMetadata> {
        let revision = previous.map_or(1, |previous| previous.revision + 1);

        match self {
            Self::Create { name, title, description, mime_type, ttl, session } => {
                Some(EntryMetadata {
                    revision,
                    name,
                    title,
                    description,
                    mime_type,
                    created: now,
                    updated: now,
                    expires: now.saturating_add(ttl),
                    session,
                    origins,
                })
            }
            Self::Update { name, title, description, mime_type, ttl, replaced } => {
                let previous = previous?;
                if replaced.is_some_and(|version| version != Version::from(previous)) {
                    return None;
                }

                Some(EntryMetadata {
                    revision,
                    name: name.unwrap_or_else(|| previous.name.clone()),
                    title: title.or_else(|| previous.title.clone()),
                    description: description.or_else(|| previous.description.clone()),
                    mime_type: mime_type.unwrap_or_else(|| kept_mime_type(previous, kind)),
                    created: previous.created,
                    updated: now,
                    expires: ttl.map_or(previous.expires, |ttl| now.saturating_add(ttl)),
                    session: previous.session.clone(),
                    // New content may be made of the old content.
                    origins: union(&origins, &previous.origins),
                })
            }
            Self::Restore(restored) => {
                let is_later = |previous: &Entry| {
                    previous.revision < restored.revision && previous.updated <= restored.updated
                };
                previous.is_none_or(is_later).then(|| EntryMetadata::of(&restored))
            }
        }
    }
}

impl EntryMetadata {
    fn of(entry: &Entry) -> Self {
        Self {
            revision: entry.revision,
            name: entry.name.clone(),
            title: entry.title.clone(),
            description: entry.description.clone(),
            mime_type: entry.mime_type.clone(),
            created: entry.created,
            updated: entry.updated,
            expires: entry.expires,
            session: entry.session.clone(),
            origins: Arc::clone(&entry.origins),
        }
    }
}

/// The media type of an update that sets none. The default type of the previous kind of content
/// does not apply to another kind.
fn kept_mime_type(previous: &Entry, kind: Kind) -> String {
    let is_default = previous.mime_type == previous.kind.default_mime_type();
    if previous.kind != kind && is_default {
        return kind.default_mime_type().to_owned();
    }
    previous.mime_type.clone()
}
