//! The maps of the memory backend: resources by owner and URI, by expiry, and
//! recently expired ones.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    fmt,
    ops::Bound,
    sync::Arc,
};

use super::{MemoryLimits, StoreError};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{Entry, OwnerQuota, ResourceUri, StoredResource, Usage, expired::Expired},
};

#[derive(Default)]
pub(super) struct Resources {
    owners: HashMap<Owner, OwnerResources>,
    by_expiry: BTreeSet<(Timestamp, Owner, ResourceUri)>,
    /// Bytes of all owners: content and reservations of uploads.
    bytes: u64,
    /// Committed resources and their bytes, without reservations.
    usage: Usage,
    expired: Expired,
}

#[derive(Default)]
struct OwnerResources {
    resources: BTreeMap<ResourceUri, Revisions>,
    /// Content and reservations of uploads.
    bytes: u64,
}

/// The stored revisions of one resource.
struct Revisions {
    current: StoredResource,
    /// Earlier revisions, oldest first.
    past: VecDeque<StoredResource>,
}

impl Revisions {
    fn bytes(&self) -> u64 {
        self.current.entry.size + self.past_bytes()
    }

    fn past_bytes(&self) -> u64 {
        self.past.iter().map(|found| found.entry.size).sum()
    }
}

impl Resources {
    /// Reserves bytes for an upload. Drops earlier revisions of the same resource
    /// if the bytes would not fit otherwise.
    pub(super) fn reserve(
        &mut self,
        owner: &Owner,
        uri: &ResourceUri,
        bytes: u64,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let used = self.bytes_of(owner);
        let missing = (self.bytes + bytes).saturating_sub(limits.bytes);
        let missing = missing.max((used + bytes).saturating_sub(limits.per_owner.bytes));
        self.drop_past(owner, uri, missing);
        if self.bytes + bytes > limits.bytes {
            return Err(StoreError::Full(format!(
                "The memory store is full: {} of {} bytes are used (memory.bytes). Delete resources, or wait until some expire.",
                self.bytes, limits.bytes
            )));
        }
        let used = self.bytes_of(owner);
        if used + bytes > limits.per_owner.bytes {
            return Err(limits.per_owner.out_of_bytes(used));
        }
        self.owners.entry(owner.clone()).or_default().bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases reserved bytes.
    pub(super) fn release(&mut self, owner: &Owner, bytes: u64) {
        self.bytes -= bytes;
        if let Some(owned) = self.owners.get_mut(owner) {
            owned.bytes -= bytes;
            if owned.bytes == 0 && owned.resources.is_empty() {
                self.owners.remove(owner);
            }
        }
    }

    /// Drops earlier revisions of a resource, oldest first, to free `bytes`. Drops
    /// none if all of them together would not free that much.
    fn drop_past(&mut self, owner: &Owner, uri: &ResourceUri, bytes: u64) {
        let owned = self.owners.get_mut(owner);
        let Some(revisions) = owned.and_then(|owned| owned.resources.get_mut(uri)) else { return };
        if revisions.past_bytes() < bytes {
            return;
        }
        let mut freed = 0;
        while freed < bytes
            && let Some(oldest) = revisions.past.pop_front()
        {
            freed += oldest.entry.size;
        }
        self.usage.bytes -= freed;
        self.release(owner, freed);
    }

    fn bytes_of(&self, owner: &Owner) -> u64 {
        self.owners.get(owner).map_or(0, |owned| owned.bytes)
    }

    pub(super) fn get(&self, owner: &Owner, uri: &ResourceUri) -> Option<&StoredResource> {
        Some(&self.owners.get(owner)?.resources.get(uri)?.current)
    }

    /// The revisions, oldest first and the current one last.
    pub(super) fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Vec<StoredResource> {
        let revisions = self.owners.get(owner).and_then(|owned| owned.resources.get(uri));
        let Some(Revisions { current, past }) = revisions else { return Vec::new() };
        let past = past.iter().cloned().map(|found| found.earlier_than(&current.entry));
        past.chain([current.clone()]).collect()
    }

    /// Checks that the quota allows one more resource.
    pub(super) fn check_count(&self, owner: &Owner, quota: OwnerQuota) -> Result<(), StoreError> {
        let count = self.owners.get(owner).map_or(0, |owned| owned.resources.len() as u64);
        if count >= quota.resources {
            return Err(quota.out_of_resources(count));
        }
        Ok(())
    }

    /// Inserts a resource whose bytes are reserved. The previous one becomes an
    /// earlier revision; `revisions` of them remain, this one included.
    pub(super) fn insert(&mut self, found: StoredResource, revisions: usize) {
        let entry = Arc::clone(&found.entry);
        let mut past = VecDeque::new();
        if let Some(previous) = self.take(&entry.owner, &entry.uri) {
            past = previous.past;
            past.push_back(previous.current);
        }
        while past.len() >= revisions.max(1)
            && let Some(oldest) = past.pop_front()
        {
            self.release(&entry.owner, oldest.entry.size);
        }
        self.expired.forget(&entry.owner, &entry.uri);
        self.by_expiry.insert((entry.expires, entry.owner.clone(), entry.uri.clone()));
        let revisions = Revisions { current: found, past };
        self.usage.resources += 1;
        self.usage.bytes += revisions.bytes();
        let owned = self.owners.entry(entry.owner.clone()).or_default();
        owned.resources.insert(entry.uri.clone(), revisions);
    }

    /// Removes a resource, but does not release its bytes.
    fn take(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Revisions> {
        let revisions = self.owners.get_mut(owner)?.resources.remove(uri)?;
        self.by_expiry.remove(&(revisions.current.entry.expires, owner.clone(), uri.clone()));
        self.usage.resources -= 1;
        self.usage.bytes -= revisions.bytes();
        Some(revisions)
    }

    pub(super) fn remove(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Arc<Entry>> {
        let revisions = self.take(owner, uri)?;
        self.release(owner, revisions.bytes());
        Some(revisions.current.entry)
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Removes up to `limit` resources that are expired at `now`.
    pub(super) fn remove_expired(&mut self, now: Timestamp, limit: usize) -> Vec<Arc<Entry>> {
        let mut removed = Vec::new();
        while removed.len() < limit && self.next_expiry().is_some_and(|at| at <= now) {
            let Some((at, owner, uri)) = self.by_expiry.pop_first() else { break };
            removed.extend(self.remove(&owner, &uri));
            self.expired.remember(owner, uri, at);
        }
        removed
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(at, _, _)| *at)
    }

    pub(super) fn expired_at(&self, owner: &Owner, uri: &ResourceUri) -> Option<Timestamp> {
        self.expired.at(owner, uri)
    }

    pub(super) fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<StoredResource> {
        let Some(owned) = self.owners.get(owner) else { return Vec::new() };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        owned
            .resources
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(uri, _)| uri.as_str().starts_with(prefix))
            .take(limit)
            .map(|(_, revisions)| revisions.current.clone())
            .collect()
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
