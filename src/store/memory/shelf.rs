//! The maps behind the memory backend: by owner and name, by expiry, and what
//! is remembered of those that expired.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    ops::Bound,
    sync::Arc,
};

use super::{MemoryLimits, StoreError};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{Entry, Found, ResourceUri, Usage, expired::Expired},
};

#[derive(Default)]
pub(super) struct Shelves {
    owners: HashMap<Owner, Shelf>,
    by_expiry: BTreeSet<(Timestamp, Owner, ResourceUri)>,
    /// Content and uploads of all owners.
    bytes: u64,
    /// What is there of that, without uploads.
    usage: Usage,
    expired: Expired,
}

#[derive(Default)]
struct Shelf {
    resources: BTreeMap<ResourceUri, Found>,
    bytes: u64,
}

impl Shelves {
    /// Counts bytes that arrive before their entry does.
    pub(super) fn reserve(
        &mut self,
        owner: &Owner,
        bytes: u64,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        if self.bytes + bytes > limits.bytes {
            return Err(StoreError::Full(format!(
                "The memory store is full: it holds {} of {} bytes (memory.bytes). Delete resources or wait until some expire.",
                self.bytes, limits.bytes
            )));
        }
        let used = self.owners.get(owner).map_or(0, |shelf| shelf.bytes);
        if used + bytes > limits.bytes_per_owner {
            return Err(StoreError::Full(format!(
                "Your resources would exceed {} bytes; {used} are used. Delete some with delete_resource, or store less.",
                limits.bytes_per_owner
            )));
        }
        self.owners.entry(owner.clone()).or_default().bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives reserved bytes back.
    pub(super) fn release(&mut self, owner: &Owner, bytes: u64) {
        self.bytes -= bytes;
        if let Some(shelf) = self.owners.get_mut(owner) {
            shelf.bytes -= bytes;
            if shelf.bytes == 0 && shelf.resources.is_empty() {
                self.owners.remove(owner);
            }
        }
    }

    pub(super) fn get(&self, owner: &Owner, uri: &ResourceUri) -> Option<&Found> {
        self.owners.get(owner)?.resources.get(uri)
    }

    /// Whether one more resource fits.
    pub(super) fn check_count(
        &self,
        owner: &Owner,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let count = self.owners.get(owner).map_or(0, |s| s.resources.len() as u64);
        if count >= limits.resources_per_owner {
            return Err(StoreError::Full(format!(
                "You have {count} resources, the most there may be. Delete some with delete_resource, or wait until some expire."
            )));
        }
        Ok(())
    }

    /// Puts a resource whose bytes are reserved in its place.
    pub(super) fn insert(&mut self, found: Found) {
        let entry = Arc::clone(&found.entry);
        self.remove(&entry.owner, &entry.uri);
        self.expired.forget(&entry.owner, &entry.uri);
        self.by_expiry.insert((entry.expires, entry.owner.clone(), entry.uri.clone()));
        self.usage.resources += 1;
        self.usage.bytes += entry.size;
        let shelf = self.owners.entry(entry.owner.clone()).or_default();
        shelf.resources.insert(entry.uri.clone(), found);
    }

    pub(super) fn remove(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Arc<Entry>> {
        let found = self.owners.get_mut(owner)?.resources.remove(uri)?;
        let entry = found.entry;
        self.by_expiry.remove(&(entry.expires, owner.clone(), uri.clone()));
        self.usage.resources -= 1;
        self.usage.bytes -= entry.size;
        self.release(owner, entry.size);
        Some(entry)
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    pub(super) fn remove_expired(&mut self, now: Timestamp, most: usize) -> Vec<Arc<Entry>> {
        let mut gone = Vec::new();
        while gone.len() < most && self.next_expiry().is_some_and(|at| at <= now) {
            let Some((at, owner, uri)) = self.by_expiry.pop_first() else { break };
            gone.extend(self.remove(&owner, &uri));
            self.expired.remember(owner, uri, at);
        }
        gone
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
    ) -> Vec<Arc<Entry>> {
        let Some(shelf) = self.owners.get(owner) else { return Vec::new() };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        shelf
            .resources
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(uri, _)| uri.as_str().starts_with(prefix))
            .take(limit)
            .map(|(_, found)| Arc::clone(&found.entry))
            .collect()
    }
}

impl fmt::Debug for Shelves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelves").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
