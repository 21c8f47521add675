//! Reads entries: a resource by its URI, all revisions of a resource, or a page of an owner's.

use std::{error::Error, sync::Arc};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    RedisState,
    blob::{RedisBlob, Unreachable},
    entry, external_blobs,
    parts::ContentParts,
    unavailable,
};
use crate::{
    redis::{cmd, pipe},
    store::object::ObjectBlob,
    store::{Blob, Entry, Lookup, ResourceUri, StoreError, StoredResource},
};

/// How many entries a listing reads in one round trip.
const BATCH: usize = 256;

impl RedisState {
    pub(super) async fn get(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Lookup, StoreError> {
        if let Some((entry, blob)) = self.look_up(owner, uri).await? {
            return Ok(Lookup::Live(self.found(entry, &blob)));
        }

        Ok(match self.expired_at(owner, uri).await? {
            Some(at) => Lookup::Expired(at),
            None => Lookup::Missing,
        })
    }

    /// The entry of a live resource, and the ID of its content.
    pub(super) async fn look_up(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<(Entry, String)>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(entry::key(&self.shard_of(owner), owner, uri.as_str())).arg(&entry::FIELDS);

        let stored: entry::EntryFields = self.redis.query(&get).await.map_err(unavailable)?;
        stored.read(owner, uri)
    }

    /// The time at which the resource expired, if known.
    async fn expired_at(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<Timestamp>, StoreError> {
        let remembered = self.expired.at(owner, uri);
        if remembered.is_some() {
            return Ok(remembered);
        }
        // The index of expiries has the time until the expiry is published.
        let mut score = cmd("ZSCORE");
        score.arg(self.shard_of(owner).key("expiries", owner.as_str())).arg(uri.as_str());
        let at: Option<u64> = self.redis.query(&score).await.map_err(unavailable)?;

        // An expiry published in the meantime is remembered as soon as this instance receives it.
        Ok(at.map(Timestamp::from_millis).or_else(|| self.expired.at(owner, uri)))
    }

    pub(super) async fn revisions(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let shard = self.shard_of(owner);
        let key = entry::key(&shard, owner, uri.as_str());
        let mut gets = pipe();
        gets.atomic().cmd("HMGET").arg(&key).arg(&entry::FIELDS);
        gets.cmd("HGET").arg(&key).arg("past");
        let (stored, past): (entry::EntryFields, Option<String>) =
            self.redis.pipeline(&gets).await.map_err(unavailable)?;

        let Some((current, blob)) = stored.read(owner, uri)? else { return Ok(Vec::new()) };
        let past = past.unwrap_or_default();

        let mut revisions = Vec::new();
        if !past.is_empty() {
            let mut gets = pipe();
            for revision in entry::earlier_revisions(&past) {
                let key = entry::earlier_key(&shard, owner, uri.as_str(), revision);
                gets.cmd("HMGET").arg(key).arg(&entry::FIELDS);
            }

            let stored: Vec<entry::EntryFields> =
                self.redis.pipeline(&gets).await.map_err(unavailable)?;
            for stored in stored {
                match stored.read(owner, uri) {
                    Ok(Some((earlier, blob))) => {
                        revisions.push(self.found(earlier, &blob).earlier_than(&current));
                    }
                    // A damaged revision does not hide the others.
                    Err(error) => {
                        tracing::error!(%error, source = error.source(), "skipped a damaged earlier revision");
                    }
                    // Dropped since the current entry was read.
                    Ok(None) => {}
                }
            }
        }

        revisions.push(self.found(current, &blob));
        Ok(revisions)
    }

    /// The resource of an entry, with a handle to the content with the ID `blob`.
    fn found(self: &Arc<Self>, entry: Entry, blob: &str) -> StoredResource {
        let uri = entry.uri.clone();
        let external = external_blobs::object_path(self.redis.keys().prefix(), blob);
        let blob: Arc<dyn Blob> = match (external, &self.blobs) {
            (Some(path), Some(blobs)) => {
                Arc::new(ObjectBlob { objects: blobs.objects().clone(), path, uri })
            }
            (Some(_), None) => Arc::new(Unreachable),
            (None, _) => {
                let shard = self.shard_of(&entry.owner);
                let parts = ContentParts::of(blob);
                Arc::new(RedisBlob { inner: Arc::clone(self), shard, parts, uri })
            }
        };
        StoredResource { entry: Arc::new(entry), blob }
    }

    pub(super) async fn page(
        self: &Arc<Self>,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let mut min = match after {
            Some(after) if after >= prefix => [b"(", after.as_bytes()].concat(),
            _ => [b"[", prefix.as_bytes()].concat(),
        };
        let max = upper_bound(prefix);

        let mut page = Vec::new();

        while page.len() < limit {
            let count = (limit - page.len()).min(BATCH);
            let uris = self.uris(owner, &min, &max, count).await?;
            let Some(last) = uris.last() else { break };

            min = [b"(", last.as_str().as_bytes()].concat();
            page.extend(self.living(owner, &uris).await?);

            if uris.len() < count {
                break;
            }
        }

        Ok(page)
    }

    /// The owner's URIs between two bounds in the syntax of `ZRANGEBYLEX`.
    async fn uris(
        &self,
        owner: &Owner,
        min: &[u8],
        max: &[u8],
        limit: usize,
    ) -> Result<Vec<ResourceUri>, StoreError> {
        let mut range = cmd("ZRANGEBYLEX");
        range.arg(self.shard_of(owner).key("names", owner.as_str())).arg(min).arg(max);
        range.arg("LIMIT").arg(0).arg(limit);

        let uris: Vec<String> = self.redis.query(&range).await.map_err(unavailable)?;

        uris.iter().map(|uri| Ok(ResourceUri::parse(uri)?)).collect()
    }

    /// The resources at `uris` that have not expired.
    async fn living(
        self: &Arc<Self>,
        owner: &Owner,
        uris: &[ResourceUri],
    ) -> Result<Vec<StoredResource>, StoreError> {
        let shard = self.shard_of(owner);
        let mut gets = pipe();
        for uri in uris {
            gets.cmd("HMGET").arg(entry::key(&shard, owner, uri.as_str())).arg(&entry::FIELDS);
        }

        let stored: Vec<entry::EntryFields> =
            self.redis.pipeline(&gets).await.map_err(unavailable)?;
        let entries = uris.iter().zip(stored).map(|(uri, stored)| stored.read(owner, uri));

        // A damaged entry does not fail the listing.
        let readable = entries.filter_map(|entry| match entry {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(%error, source = error.source(), "a listing skipped a damaged entry");
                None
            }
        });

        Ok(readable.map(|(entry, blob)| self.found(entry, &blob)).collect())
    }
}

/// The exclusive upper bound of all URIs that begin with `prefix`, in the syntax
/// of `ZRANGEBYLEX`.
fn upper_bound(prefix: &str) -> Vec<u8> {
    // UTF-8 has no byte 0xFF, so adding one to the last byte never overflows.
    let mut bound = [b"(", prefix.as_bytes()].concat();

    match prefix.len() {
        0 => b"+".to_vec(),
        last => {
            bound[last] += 1;
            bound
        }
    }
}
