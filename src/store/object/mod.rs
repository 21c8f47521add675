//! Resources as objects: files in a directory, or in S3 and what speaks like it.
//!
//! Nothing here is ever changed: an entry is a file whose name has a number
//! that is never used again, and the newest counts. What makes a number one's
//! own is [`ledger`]; where things lie is [`layout`]; what has expired is
//! found by [`expiry`].

mod bucket;
mod change;
mod expiry;
mod layout;
mod ledger;
mod listing;
mod objects;
mod parts;
mod place;
mod record;
#[cfg(test)]
pub(super) mod tests;
mod upload;
mod usage;

use std::{error::Error, fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;

pub use self::place::{ObjectPlace, PlaceError};
use self::{expiry::Agenda, ledger::Turns, record::Record, upload::ObjectUpload, usage::Sum};
pub(super) use self::{objects::Objects, parts::Parts};
use super::{
    Backend, Blob, ChangeFeed, Found, Lookup, OwnerQuota, ResourceUri, StoreError, Upload, Usage,
    expired::Expired,
};
use crate::{auth::Owner, clock::Clock, random::Random};

/// How much content is asked for at once: a request to S3 takes as long as this to come.
const AT_ONCE: u64 = 1 << 20;

/// Keeps resources as objects. Changes are heard in the process that makes
/// them, and expiries in the one that finds them.
#[derive(Debug)]
pub struct ObjectBackend {
    inner: Arc<Inner>,
}

struct Inner {
    objects: Objects,
    clock: Arc<dyn Clock>,
    random: Random,
    quota: OwnerQuota,
    feed: ChangeFeed,
    sum: Sum,
    /// Where, for those who share it.
    place: String,
    turns: Turns,
    agenda: Agenda,
    /// What expired here: nothing of it is left there.
    expired: Expired,
}

impl ObjectBackend {
    /// At a place that is known to be there.
    pub fn new(
        place: ObjectPlace,
        clock: Arc<dyn Clock>,
        random: Random,
        quota: OwnerQuota,
    ) -> Self {
        let inner = Inner {
            objects: place.objects,
            place: place.url,
            sum: Sum::default(),
            agenda: Agenda::new(clock.now()),
            clock,
            random,
            quota,
            feed: ChangeFeed::new(),
            turns: Turns::default(),
            expired: Expired::default(),
        };
        Self { inner: Arc::new(inner) }
    }
}

#[async_trait]
impl Backend for ObjectBackend {
    fn name(&self) -> &'static str {
        self.inner.objects.name
    }

    fn shared(&self) -> Option<String> {
        Some(self.inner.place.clone())
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(&self, owner: &Owner, uri: &ResourceUri) -> Result<Box<dyn Upload>, StoreError> {
        Ok(Box::new(ObjectUpload::new(Arc::clone(&self.inner), owner.clone(), uri)))
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let inner = &self.inner;
        let Some(current) = inner.current(owner, uri).await? else {
            return Ok(inner.expired.at(owner, uri).map_or(Lookup::Missing, Lookup::Expired));
        };
        let record = current.record?;
        if record.entry.is_expired(inner.clock.now()) {
            let at = record.entry.expires;
            inner.expire(owner, uri).await?;
            return Ok(Lookup::Expired(at));
        }
        Ok(Lookup::Found(inner.found(record)))
    }

    async fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Result<Vec<Found>, StoreError> {
        self.inner.revisions(owner, uri).await
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
    ) -> Result<Vec<Found>, StoreError> {
        self.inner.page(owner, prefix, after, limit).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.inner.usage().await
    }

    async fn maintain(&self) {
        self.inner.sweep_on_time().await;
    }
}

impl Inner {
    async fn revisions(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<Found>, StoreError> {
        let Some(current) = self.current(owner, uri).await? else { return Ok(Vec::new()) };
        let present = current.record?;
        if present.entry.is_expired(self.clock.now()) {
            return Ok(Vec::new());
        }
        let resource = layout::resource(owner, uri);
        let mut revisions = Vec::new();
        for past in &present.past {
            // One that was dropped meanwhile is not there; one that is damaged is missing.
            match self.record(&resource, past.number, owner, Some(uri)).await? {
                Some(Ok(earlier)) => {
                    revisions.push(self.found(earlier).earlier_than(&present.entry));
                }
                Some(Err(error)) => {
                    tracing::error!(%error, source = error.source(), "an earlier revision is left out");
                }
                None => {}
            }
        }
        revisions.push(self.found(present));
        Ok(revisions)
    }

    fn found(self: &Arc<Self>, record: Record) -> Found {
        let resource = layout::resource(&record.entry.owner, &record.entry.uri);
        let blob = ObjectBlob {
            objects: self.objects.clone(),
            path: layout::content(&resource, &record.content),
            uri: record.entry.uri.clone(),
        };
        Found { entry: Arc::new(record.entry), blob: Arc::new(blob) }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("objects", &self.objects).finish_non_exhaustive()
    }
}

/// The content of one revision. Its path is never used for another.
pub(super) struct ObjectBlob {
    pub(super) objects: Objects,
    pub(super) path: Path,
    pub(super) uri: ResourceUri,
}

#[async_trait]
impl Blob for ObjectBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let wanted = range.end - range.start;
        match self.objects.range(&self.path, range).await? {
            Some(bytes) if bytes.len() as u64 == wanted => Ok(bytes),
            Some(bytes) => {
                let source = format!("{} of {wanted} bytes are there", bytes.len()).into();
                Err(StoreError::Corrupt { uri: self.uri.clone(), source })
            }
            // Its time was over, or it was replaced a while ago.
            None => Err(StoreError::NotFound { uri: self.uri.clone() }),
        }
    }

    fn read_ahead(&self) -> u64 {
        AT_ONCE
    }
}
