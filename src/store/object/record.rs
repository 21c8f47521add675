//! Entries as they lie in their files.

use futures_util::TryStreamExt;
use object_store::{ObjectStoreExt, path::Path};
use serde::{Deserialize, Serialize};

use super::{Inner, layout};
use crate::{
    auth::Owner,
    store::{Entry, ResourceUri, StoreError},
};

/// How often to look again where what was listed has gone meanwhile.
const TRIES: usize = 20;

/// An entry and where its content lies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The id of the content.
    pub(super) content: String,
    pub(super) entry: Entry,
}

/// What lies under a name: a record, or why it cannot be read.
type Current = Result<Record, StoreError>;

impl Inner {
    /// What lies under a name, expired or not.
    pub(super) async fn current(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<Current>, StoreError> {
        let resource = layout::resource(owner, uri);
        for _ in 0..TRIES {
            let files: Vec<_> = self
                .objects
                .list(Some(&resource))
                .try_collect()
                .await
                .map_err(super::unavailable)?;
            let newest = files.iter().filter_map(|file| layout::number(&file.location)).max();
            let Some(number) = newest else { return Ok(None) };
            if let Some(record) = self.record(&resource, number, owner, Some(uri)).await? {
                return Ok(Some(record));
            }
        }
        Err(super::busy())
    }

    /// That record; nothing if it has gone.
    pub(super) async fn record(
        &self,
        resource: &Path,
        number: u64,
        owner: &Owner,
        uri: Option<&ResourceUri>,
    ) -> Result<Option<Current>, StoreError> {
        let path = layout::entry(resource, number);
        let bytes = match self.objects.get(&path).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(super::unavailable(error)),
        };
        let record = serde_json::from_slice::<Record>(&bytes);
        Ok(Some(match record {
            Ok(Record { entry, .. })
                if entry.owner != *owner || layout::resource(owner, &entry.uri) != *resource =>
            {
                Err(corrupt(uri, &path, "it is of another resource".into()))
            }
            Ok(record) => Ok(record),
            Err(error) => Err(corrupt(uri, &path, error.into())),
        }))
    }
}

fn corrupt(
    uri: Option<&ResourceUri>,
    path: &Path,
    source: Box<dyn std::error::Error + Send + Sync>,
) -> StoreError {
    match uri {
        Some(uri) => StoreError::Corrupt { uri: uri.clone(), source },
        None => super::damaged(path, &*source),
    }
}
