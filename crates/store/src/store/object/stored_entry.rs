//! [`StoredEntry`]: an entry as stored in its object.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use larder_identity::Owner;
use object_store::path::Path;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{ObjectState, layout};
use crate::store::{Entry, ResourceUri, StoreError};

/// How many times a lookup lists the entries when the entry that it found has been removed
/// meanwhile. Each attempt fails only after [`super::ledger::SUPERSEDED_ENTRIES`] changes.
const ATTEMPTS: usize = 20;

/// The stored form of an entry: the entry, and where its content is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredEntry {
    pub(super) content: StoredContent,
    pub(super) entry: Entry,
    /// The earlier revisions that are kept, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) past: Vec<EarlierRevision>,
    /// The bytes that the current revision counts. Entries of earlier versions lack this field,
    /// and count the size of their content.
    #[serde(default)]
    counted: Option<u64>,
}

/// The place of a revision's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredContent {
    /// In its own object, which has this ID.
    Object(String),
    /// In the entry, because it is small. Such content needs no request of its own.
    Entry {
        /// The content, as stored.
        #[serde(serialize_with = "encode", deserialize_with = "decode")]
        base64: Bytes,
    },
}

impl StoredContent {
    /// The most content that an entry has, in bytes as stored.
    pub(super) const MAX_IN_ENTRY: usize = 4 * 1024;

    /// Whether the content is in the entry itself.
    pub(super) fn is_in_entry(&self) -> bool {
        self.object().is_none()
    }

    /// The ID of the content's object, if it has one.
    pub(super) fn object(&self) -> Option<&String> {
        match self {
            Self::Object(id) => Some(id),
            Self::Entry { .. } => None,
        }
    }
}

fn encode<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD_NO_PAD.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD_NO_PAD.decode(text).map(Bytes::from).map_err(D::Error::custom)
}

/// An earlier revision. Its entry stays in its own object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EarlierRevision {
    /// The change number of the revision's entry.
    pub(super) number: u64,
    /// The ID of the object with the content, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    /// The bytes that the revision counts.
    pub(super) size: u64,
}

impl StoredEntry {
    pub(super) fn new(content: StoredContent, entry: Entry, past: Vec<EarlierRevision>) -> Self {
        let counted = Some(entry.counted_bytes());
        Self { content, entry, past, counted }
    }

    /// The bytes that the current revision counts.
    fn current_bytes(&self) -> u64 {
        self.counted.unwrap_or(self.entry.size)
    }

    /// Whether the current or an earlier revision has its content in the object `id`.
    pub(super) fn has_object(&self, id: &str) -> bool {
        self.objects().any(|(object, _)| object == id)
    }

    /// The IDs of the objects with content of all revisions, each once, and the bytes that each
    /// counts. Revisions may share an object.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&String, u64)> {
        let past = self.past.iter().map(|earlier| (earlier.content.as_ref(), earlier.size));
        let all = past.chain([(self.content.object(), self.current_bytes())]);
        let objects: BTreeMap<_, _> =
            all.filter_map(|(id, counted)| Some((id?, counted))).collect();
        objects.into_iter()
    }

    /// The bytes that count against the owner's quota.
    pub(super) fn bytes(&self) -> u64 {
        self.current_bytes() + self.past.iter().map(|earlier| earlier.size).sum::<u64>()
    }

    /// The earlier revisions once this entry, whose change number is `number`, is replaced.
    pub(super) fn into_earlier(self, number: u64) -> Vec<EarlierRevision> {
        let size = self.current_bytes();
        let Self { content, mut past, .. } = self;

        past.push(EarlierRevision { number, content: content.object().cloned(), size });
        past
    }
}

/// The newest entry of a resource, expired or not.
pub(super) struct CurrentEntry {
    /// The entry's change number.
    pub(super) number: u64,
    /// The entry, or the reason why it cannot be read.
    pub(super) stored: Result<StoredEntry, StoreError>,
}

impl ObjectState {
    /// The newest entry of a resource, expired or not.
    pub(super) async fn current(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<CurrentEntry>, StoreError> {
        Ok(self.current_and_listed(owner, uri).await?.0)
    }

    /// The newest entry of a resource, and the change numbers of all entries in the same listing.
    pub(super) async fn current_and_listed(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(Option<CurrentEntry>, Vec<u64>), StoreError> {
        let resource = layout::resource(owner, uri);

        for _ in 0..ATTEMPTS {
            let (files, bytes) = self.objects.list_and_get(&resource, newest_entry).await?;
            let entries = files.iter().filter_map(layout::number).collect();

            let Some(path) = newest_entry(&files) else { return Ok((None, entries)) };
            if let Some(bytes) = bytes {
                let stored = self.decode_entry(&resource, &path, &bytes, owner, Some(uri));
                let number = layout::number(&path);
                return Ok((number.map(|number| CurrentEntry { number, stored }), entries));
            }
        }

        Err(self.objects.failed("the resource changes faster than it can be read"))
    }

    /// The entry with the change number `number`, or the reason why it cannot be read. `None` if
    /// it has been removed.
    pub(super) async fn read_entry(
        &self,
        resource: &Path,
        number: u64,
        owner: &Owner,
        uri: Option<&ResourceUri>,
    ) -> Result<Option<Result<StoredEntry, StoreError>>, StoreError> {
        let path = layout::entry(resource, number);
        let Some(bytes) = self.objects.get(&path).await? else { return Ok(None) };
        Ok(Some(self.decode_entry(resource, &path, &bytes, owner, uri)))
    }

    /// Decodes the entry in the object at `path`, and checks that it is of this resource.
    fn decode_entry(
        &self,
        resource: &Path,
        path: &Path,
        bytes: &[u8],
        owner: &Owner,
        uri: Option<&ResourceUri>,
    ) -> Result<StoredEntry, StoreError> {
        let corrupt = |source: Box<dyn std::error::Error + Send + Sync>| match uri {
            Some(uri) => StoreError::Corrupt { uri: uri.clone(), source },
            None => self.objects.damaged(path, &*source),
        };

        match serde_json::from_slice::<StoredEntry>(bytes) {
            Ok(StoredEntry { entry, .. })
                if entry.owner != *owner || layout::resource(owner, &entry.uri) != *resource =>
            {
                Err(corrupt("the entry is of another resource".into()))
            }
            Ok(stored) => Ok(stored),
            Err(error) => Err(corrupt(error.into())),
        }
    }
}

/// The newest entry among the objects of a resource, unless the resource was removed after it.
fn newest_entry(files: &[Path]) -> Option<Path> {
    let removed = files.iter().filter_map(layout::tombstone_number).max();
    let numbered = files.iter().filter_map(|file| Some((layout::number(file)?, file)));
    let (number, newest) = numbered.max_by_key(|(number, _)| *number)?;
    (removed < Some(number)).then(|| newest.clone())
}
