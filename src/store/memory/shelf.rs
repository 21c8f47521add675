//! The maps behind the memory backend: by owner and name, by expiry, and what
//! is remembered of those that expired.

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
    store::{Entry, Found, OwnerQuota, ResourceUri, Usage, expired::Expired},
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
    resources: BTreeMap<ResourceUri, Kept>,
    bytes: u64,
}

/// A resource.
struct Kept {
    present: Found,
    /// Earlier revisions, oldest first.
    past: VecDeque<Found>,
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.present.entry.size + self.past_bytes()
    }

    fn past_bytes(&self) -> u64 {
        self.past.iter().map(|found| found.entry.size).sum()
    }
}

impl Shelves {
    /// Counts bytes that arrive before their entry does. Where they do not fit,
    /// earlier revisions of what they are for give way.
    pub(super) fn reserve(
        &mut self,
        owner: &Owner,
        uri: &ResourceUri,
        bytes: u64,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let used = self.owners.get(owner).map_or(0, |shelf| shelf.bytes);
        let missing = (self.bytes + bytes).saturating_sub(limits.bytes);
        let missing = missing.max((used + bytes).saturating_sub(limits.per_owner.bytes));
        self.shed(owner, uri, missing);
        if self.bytes + bytes > limits.bytes {
            return Err(StoreError::Full(format!(
                "The memory store is full: it holds {} of {} bytes (memory.bytes). Delete resources or wait until some expire.",
                self.bytes, limits.bytes
            )));
        }
        let used = self.owners.get(owner).map_or(0, |shelf| shelf.bytes);
        if used + bytes > limits.per_owner.bytes {
            return Err(limits.per_owner.out_of_bytes(used));
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

    /// Forgets as many earlier revisions of a resource as make that much room,
    /// if they do.
    fn shed(&mut self, owner: &Owner, uri: &ResourceUri, bytes: u64) {
        let shelf = self.owners.get_mut(owner);
        let Some(kept) = shelf.and_then(|shelf| shelf.resources.get_mut(uri)) else { return };
        if kept.past_bytes() < bytes {
            return;
        }
        let mut room = 0;
        while room < bytes
            && let Some(oldest) = kept.past.pop_front()
        {
            room += oldest.entry.size;
        }
        self.usage.bytes -= room;
        self.release(owner, room);
    }

    pub(super) fn get(&self, owner: &Owner, uri: &ResourceUri) -> Option<&Found> {
        Some(&self.owners.get(owner)?.resources.get(uri)?.present)
    }

    /// Oldest first, the present one last.
    pub(super) fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Vec<Found> {
        let kept = self.owners.get(owner).and_then(|shelf| shelf.resources.get(uri));
        let Some(Kept { present, past }) = kept else { return Vec::new() };
        let past = past.iter().cloned().map(|found| found.earlier_than(&present.entry));
        past.chain([present.clone()]).collect()
    }

    /// Whether one more resource fits.
    pub(super) fn check_count(&self, owner: &Owner, quota: OwnerQuota) -> Result<(), StoreError> {
        let count = self.owners.get(owner).map_or(0, |s| s.resources.len() as u64);
        if count >= quota.resources {
            return Err(quota.out_of_resources(count));
        }
        Ok(())
    }

    /// Puts a resource whose bytes are reserved in its place, and keeps so many
    /// revisions of it.
    pub(super) fn insert(&mut self, found: Found, revisions: usize) {
        let entry = Arc::clone(&found.entry);
        let mut past = VecDeque::new();
        if let Some(old) = self.take(&entry.owner, &entry.uri) {
            past = old.past;
            past.push_back(old.present);
        }
        while past.len() >= revisions.max(1)
            && let Some(oldest) = past.pop_front()
        {
            self.release(&entry.owner, oldest.entry.size);
        }
        self.expired.forget(&entry.owner, &entry.uri);
        self.by_expiry.insert((entry.expires, entry.owner.clone(), entry.uri.clone()));
        let kept = Kept { present: found, past };
        self.usage.resources += 1;
        self.usage.bytes += kept.bytes();
        let shelf = self.owners.entry(entry.owner.clone()).or_default();
        shelf.resources.insert(entry.uri.clone(), kept);
    }

    /// What is there, whose bytes still count.
    fn take(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Kept> {
        let kept = self.owners.get_mut(owner)?.resources.remove(uri)?;
        self.by_expiry.remove(&(kept.present.entry.expires, owner.clone(), uri.clone()));
        self.usage.resources -= 1;
        self.usage.bytes -= kept.bytes();
        Some(kept)
    }

    pub(super) fn remove(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Arc<Entry>> {
        let kept = self.take(owner, uri)?;
        self.release(owner, kept.bytes());
        Some(kept.present.entry)
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
    ) -> Vec<Found> {
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
            .map(|(_, kept)| kept.present.clone())
            .collect()
    }
}

impl fmt::Debug for Shelves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelves").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
