//! Resources as objects: files in a directory, or in S3 and what speaks like it.
//!
//! Nothing here is ever changed: an entry is a file whose name has a number
//! that is never used again, and the newest counts. What makes a number one's
//! own is [`ledger`]; where things lie is [`layout`]; what has expired is
//! found by [`expiry`].

mod change;
mod expiry;
mod layout;
mod ledger;
mod place;
mod record;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod upload;

use std::{collections::BTreeMap, error::Error, fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

pub use self::place::{ObjectPlace, PlaceError};
use self::{expiry::Agenda, ledger::Turns, record::Record, upload::ObjectUpload};
use super::{
    Backend, Blob, ChangeFeed, Entry, Found, Lookup, MemoryLimits, ResourceUri, StoreError, Upload,
};
use crate::{auth::Owner, clock::Clock, random::Random};

/// How many entries are read at once while listing.
const READERS: usize = 16;

/// How much one owner may keep, counted before compression.
#[derive(Debug, Clone)]
pub struct ObjectLimits {
    /// Bytes of content.
    pub bytes_per_owner: u64,
    /// Resources.
    pub resources_per_owner: u64,
}

impl Default for ObjectLimits {
    /// As in memory.
    fn default() -> Self {
        let MemoryLimits { bytes_per_owner, resources_per_owner, .. } = MemoryLimits::default();
        Self { bytes_per_owner, resources_per_owner }
    }
}

/// Keeps resources as objects. Changes are heard in the process that makes
/// them, and expiries in the one that finds them.
#[derive(Debug)]
pub struct ObjectBackend {
    inner: Arc<Inner>,
}

struct Inner {
    objects: Arc<dyn ObjectStore>,
    name: &'static str,
    clock: Arc<dyn Clock>,
    random: Random,
    limits: ObjectLimits,
    feed: ChangeFeed,
    turns: Turns,
    agenda: Agenda,
}

impl ObjectBackend {
    /// At a place that is known to be there.
    pub fn new(
        place: ObjectPlace,
        clock: Arc<dyn Clock>,
        random: Random,
        limits: ObjectLimits,
    ) -> Self {
        let inner = Inner {
            objects: place.objects,
            name: place.name,
            agenda: Agenda::new(clock.now()),
            clock,
            random,
            limits,
            feed: ChangeFeed::new(),
            turns: Turns::default(),
        };
        Self { inner: Arc::new(inner) }
    }
}

#[async_trait]
impl Backend for ObjectBackend {
    fn name(&self) -> &'static str {
        self.inner.name
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(&self, owner: &Owner, uri: &ResourceUri) -> Result<Box<dyn Upload>, StoreError> {
        Ok(Box::new(ObjectUpload::new(Arc::clone(&self.inner), owner.clone(), uri)))
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let Some(current) = self.inner.current(owner, uri).await? else {
            return Ok(Lookup::Missing);
        };
        let record = current?;
        if record.entry.is_expired(self.inner.clock.now()) {
            let at = record.entry.expires;
            self.inner.expire(owner, uri).await?;
            return Ok(Lookup::Expired(at));
        }
        Ok(Lookup::Found(self.inner.found(record)))
    }

    async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        self.inner.delete(owner, uri).await
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, StoreError> {
        let inner = &self.inner;
        let now = inner.clock.now();
        let names = inner.names(owner, prefix, after).await?;
        let entries = stream::iter(names.into_values()).map(|(resource, number)| async move {
            inner.record(&resource, number, owner, None).await
        });
        let mut entries = std::pin::pin!(entries.buffered(READERS.min(limit.max(1))));
        let mut page = Vec::new();
        while page.len() < limit {
            match entries.next().await.transpose()? {
                None => break,
                // It has gone, or was replaced since.
                Some(None) => {}
                Some(Some(Ok(record))) if record.entry.is_expired(now) => {}
                Some(Some(Ok(record))) => page.push(Arc::new(record.entry)),
                // One that cannot be read is missing from the list, and the rest is there.
                Some(Some(Err(error))) => {
                    tracing::error!(%error, source = error.source(), "left out of a listing");
                }
            }
        }
        Ok(page)
    }

    async fn maintain(&self) {
        self.inner.sweep_on_time().await;
    }
}

impl Inner {
    fn found(self: &Arc<Self>, record: Record) -> Found {
        let resource = layout::resource(&record.entry.owner, &record.entry.uri);
        let blob = ObjectBlob {
            inner: Arc::clone(self),
            path: layout::content(&resource, &record.content),
            uri: record.entry.uri.clone(),
        };
        Found { entry: Arc::new(record.entry), blob: Arc::new(blob) }
    }

    /// The owner's names that begin with `prefix` and come after `after`, with
    /// where each lies and its newest entry. Looks at the names of all files
    /// of that scheme, since no place for objects keeps them in the order of URIs.
    async fn names(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<BTreeMap<ResourceUri, (Path, u64)>, StoreError> {
        let scheme = prefix.split_once(':').map(|(scheme, _)| scheme);
        // What is no scheme begins nobody's name.
        let folder = match scheme.map(|scheme| ResourceUri::parse(&format!("{scheme}:"))) {
            Some(Ok(_)) => layout::of_scheme(owner, scheme.unwrap_or_default()),
            Some(Err(_)) => return Ok(BTreeMap::new()),
            None => layout::of_owner(owner),
        };
        let mut newest = BTreeMap::<Path, u64>::new();
        let mut files = self.objects.list(Some(&folder));
        while let Some(file) = files.try_next().await.map_err(unavailable)? {
            if let Some(number) = layout::number(&file.location)
                && let Some(resource) = layout::folder(&file.location)
            {
                let known = newest.entry(resource).or_default();
                *known = number.max(*known);
            }
        }
        let mut names = BTreeMap::new();
        for (resource, number) in newest {
            let uri = match layout::uri(owner, &resource) {
                Some(uri) => uri,
                // Too long for a path: it stands in the entry.
                None => match self.record(&resource, number, owner, None).await? {
                    Some(Ok(record)) => record.entry.uri,
                    _ => continue,
                },
            };
            if uri.as_str().starts_with(prefix) && after.is_none_or(|after| uri.as_str() > after) {
                names.insert(uri, (resource, number));
            }
        }
        Ok(names)
    }

    /// Removes a file, if it is there.
    async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("objects", &self.objects).finish_non_exhaustive()
    }
}

/// The content of one revision. Its path is never used for another.
struct ObjectBlob {
    inner: Arc<Inner>,
    path: Path,
    uri: ResourceUri,
}

#[async_trait]
impl Blob for ObjectBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let uri = || self.uri.clone();
        let wanted = range.end - range.start;
        match self.inner.objects.get_range(&self.path, range).await {
            Ok(bytes) if bytes.len() as u64 == wanted => Ok(bytes),
            Ok(bytes) => {
                let source = format!("{} of {wanted} bytes are there", bytes.len()).into();
                Err(StoreError::Corrupt { uri: uri(), source })
            }
            // Its time was over, or it was replaced.
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::NotFound { uri: uri() }),
            Err(error) => Err(unavailable(error)),
        }
    }
}

const NAME: &str = "object";

fn unavailable(error: object_store::Error) -> StoreError {
    StoreError::Unavailable { backend: NAME, source: error.into() }
}

fn damaged(path: &Path, problem: &dyn Error) -> StoreError {
    StoreError::Unavailable {
        backend: NAME,
        source: format!("{path} is damaged: {problem}").into(),
    }
}

fn busy() -> StoreError {
    StoreError::Unavailable {
        backend: NAME,
        source: "it changes faster than it can be read".into(),
    }
}
