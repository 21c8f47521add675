//! Entries as they lie in their files.

use futures_util::TryStreamExt;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use super::{Inner, layout};
use crate::{
    auth::Owner,
    store::{Entry, ResourceUri, StoreError},
};

/// How often to look again where what was listed has gone meanwhile: each time
/// that many changes have overtaken it as [`super::change::OVERTAKEN`] says.
const TRIES: usize = 20;

/// An entry and where its content lies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The id of the content.
    pub(super) content: String,
    pub(super) entry: Entry,
    /// The earlier revisions that are kept, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) past: Vec<Past>,
}

/// An earlier revision, whose entry lies where it lay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Past {
    /// Of the entry.
    pub(super) number: u64,
    /// The id of the content.
    pub(super) content: String,
    pub(super) size: u64,
}

impl Record {
    /// Whether it is where that content belongs.
    pub(super) fn wants(&self, id: &str) -> bool {
        self.contents().any(|content| content == id)
    }

    /// The ids of all content that belongs here.
    pub(super) fn contents(&self) -> impl Iterator<Item = &String> {
        self.past.iter().map(|past| &past.content).chain([&self.content])
    }

    /// What counts for the owner.
    pub(super) fn bytes(&self) -> u64 {
        self.entry.size + self.past.iter().map(|past| past.size).sum::<u64>()
    }

    /// What is past once another takes its place, which has that number.
    pub(super) fn into_past(self, number: u64) -> Vec<Past> {
        let Self { content, entry, mut past } = self;
        past.push(Past { number, content, size: entry.size });
        past
    }
}

/// The newest of what lies under a name, living or not.
pub(super) struct Current {
    pub(super) number: u64,
    /// What can be read of it, or why nothing can.
    pub(super) record: Result<Record, StoreError>,
}

impl Inner {
    /// What lies under a name, expired or not.
    pub(super) async fn current(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<Current>, StoreError> {
        let resource = layout::resource(owner, uri);
        for _ in 0..TRIES {
            let mut newest = None;
            let mut files = self.objects.below(&resource);
            while let Some(file) = files.try_next().await? {
                newest = newest.max(layout::number(&file.location));
            }
            let Some(number) = newest else { return Ok(None) };
            if let Some(record) = self.record(&resource, number, owner, Some(uri)).await? {
                return Ok(Some(Current { number, record }));
            }
        }
        Err(self.objects.failed("it changes faster than it can be read"))
    }

    /// That record, or why it cannot be read; nothing if it has gone.
    pub(super) async fn record(
        &self,
        resource: &Path,
        number: u64,
        owner: &Owner,
        uri: Option<&ResourceUri>,
    ) -> Result<Option<Result<Record, StoreError>>, StoreError> {
        let path = layout::entry(resource, number);
        let Some(bytes) = self.objects.get(&path).await? else { return Ok(None) };
        let corrupt = |source: Box<dyn std::error::Error + Send + Sync>| match uri {
            Some(uri) => StoreError::Corrupt { uri: uri.clone(), source },
            None => self.objects.damaged(&path, &*source),
        };
        Ok(Some(match serde_json::from_slice::<Record>(&bytes) {
            Ok(Record { entry, .. })
                if entry.owner != *owner || layout::resource(owner, &entry.uri) != *resource =>
            {
                Err(corrupt("it is of another resource".into()))
            }
            Ok(record) => Ok(record),
            Err(error) => Err(corrupt(error.into())),
        }))
    }
}
