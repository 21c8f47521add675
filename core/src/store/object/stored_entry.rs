//! [`StoredEntry`]: an entry as stored in its object.

use futures_util::TryStreamExt;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use super::{Inner, layout};
use crate::{
    auth::Owner,
    store::{Entry, ResourceUri, StoreError},
};

/// How many times a lookup lists the entries, when the one that it found has been removed
/// meanwhile: each time after [`super::ledger::SUPERSEDED_ENTRIES`] changes.
const ATTEMPTS: usize = 20;

/// The content of an entry's object: the entry and the ID of its content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredEntry {
    /// The ID of the content.
    pub(super) content: String,
    pub(super) entry: Entry,
    /// The earlier revisions that are kept, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) past: Vec<EarlierRevision>,
    /// What the current revision counts. Entries of earlier versions do not have it:
    /// then it is the size of the content.
    #[serde(default)]
    counted: Option<u64>,
}

/// An earlier revision. Its entry stays in its own object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EarlierRevision {
    /// The change number of its entry.
    pub(super) number: u64,
    /// The ID of the content.
    pub(super) content: String,
    /// What it counts.
    pub(super) size: u64,
}

impl StoredEntry {
    pub(super) fn new(content: String, entry: Entry, past: Vec<EarlierRevision>) -> Self {
        let counted = Some(entry.counted_bytes());
        Self { content, entry, past, counted }
    }

    /// What the current revision counts.
    fn current_bytes(&self) -> u64 {
        self.counted.unwrap_or(self.entry.size)
    }

    /// Whether the current or an earlier revision has that content.
    pub(super) fn has_content(&self, id: &str) -> bool {
        self.content_ids().any(|content| content == id)
    }

    /// The IDs of the content of all revisions.
    pub(super) fn content_ids(&self) -> impl Iterator<Item = &String> {
        self.contents().map(|(id, _)| id)
    }

    /// The same with what each counts.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&String, u64)> {
        let past = self.past.iter().map(|earlier| (&earlier.content, earlier.size));
        past.chain([(&self.content, self.current_bytes())])
    }

    /// The bytes that count against the owner's quota.
    pub(super) fn bytes(&self) -> u64 {
        self.current_bytes() + self.past.iter().map(|earlier| earlier.size).sum::<u64>()
    }

    /// The earlier revisions once this entry, which has that change number, is
    /// replaced.
    pub(super) fn into_earlier(self, number: u64) -> Vec<EarlierRevision> {
        let size = self.current_bytes();
        let Self { content, mut past, .. } = self;
        past.push(EarlierRevision { number, content, size });
        past
    }
}

/// The newest entry of a resource, expired or not.
pub(super) struct Current {
    /// Its change number.
    pub(super) number: u64,
    /// The entry, or why it cannot be read.
    pub(super) stored: Result<StoredEntry, StoreError>,
}

impl Inner {
    /// The newest entry of a resource, expired or not.
    pub(super) async fn current(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<Current>, StoreError> {
        let resource = layout::resource(owner, uri);
        for _ in 0..ATTEMPTS {
            let (mut newest, mut removed) = (None, None);
            let mut files = self.objects.list(&resource);
            while let Some(file) = files.try_next().await? {
                newest = newest.max(layout::number(&file.location));
                removed = removed.max(layout::tombstone_number(&file.location));
            }
            let Some(number) = newest.filter(|number| removed < Some(*number)) else {
                return Ok(None);
            };
            if let Some(stored) = self.read_entry(&resource, number, owner, Some(uri)).await? {
                return Ok(Some(Current { number, stored }));
            }
        }
        Err(self.objects.failed("the resource changes faster than it can be read"))
    }

    /// The entry with that change number, or why it cannot be read. None if it
    /// has been removed.
    pub(super) async fn read_entry(
        &self,
        resource: &Path,
        number: u64,
        owner: &Owner,
        uri: Option<&ResourceUri>,
    ) -> Result<Option<Result<StoredEntry, StoreError>>, StoreError> {
        let path = layout::entry(resource, number);
        let Some(bytes) = self.objects.get(&path).await? else { return Ok(None) };
        let corrupt = |source: Box<dyn std::error::Error + Send + Sync>| match uri {
            Some(uri) => StoreError::Corrupt { uri: uri.clone(), source },
            None => self.objects.damaged(&path, &*source),
        };
        Ok(Some(match serde_json::from_slice::<StoredEntry>(&bytes) {
            Ok(StoredEntry { entry, .. })
                if entry.owner != *owner || layout::resource(owner, &entry.uri) != *resource =>
            {
                Err(corrupt("the entry is of another resource".into()))
            }
            Ok(stored) => Ok(stored),
            Err(error) => Err(corrupt(error.into())),
        }))
    }
}
