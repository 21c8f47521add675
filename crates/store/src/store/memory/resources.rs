//! The maps of the memory backend: resources by owner and URI, and recently expired ones.

use std::{
    collections::VecDeque,
    fmt,
    ops::Bound,
    sync::{Arc, Weak},
};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    MemoryBlob, MemoryLimits, StoreError,
    account::{Account, Charge},
    reservations::MemoryReservations,
};
use crate::{
    expiring::ExpiringMap,
    store::expired::Expired,
    store::{Entry, OwnerPage, OwnerQuota, ResourceUri, StoredResource, Usage},
};

/// All resources in memory.
#[derive(Default)]
pub(super) struct Resources {
    /// The owners, ordered by name for [`owners`](Self::owners). An owner expires with its first
    /// resource; an owner without resources does not.
    owners: ExpiringMap<Owner, OwnerResources>,

    /// All bytes in memory: of resources, of uploads, and of removed content that is still read.
    total: Account,
    /// The committed resources and the bytes that they count.
    usage: Usage,

    expired: Expired,
    pub(super) reservations: MemoryReservations,

    /// Owners without resources who still had bytes in memory when last checked.
    leaving: VecDeque<Owner>,
}

/// The resources and bytes of one owner.
#[derive(Default)]
struct OwnerResources {
    resources: ExpiringMap<ResourceUri, Revisions>,

    /// The owner's bytes in memory.
    account: Account,
    /// Content that was being read when it was removed, oldest first.
    removed: VecDeque<Weak<MemoryBlob>>,
    /// Whether the owner is in [`Resources::leaving`].
    is_leaving: bool,
}

/// A revision and its content.
struct Revision {
    found: StoredResource,
    blob: Arc<MemoryBlob>,
}

impl Revision {
    fn bytes(&self) -> u64 {
        self.found.entry.counted_bytes()
    }
}

/// The stored revisions of one resource.
struct Revisions {
    current: Revision,
    /// Earlier revisions, oldest first.
    past: VecDeque<Revision>,
}

impl Revisions {
    fn bytes(&self) -> u64 {
        self.current.bytes() + self.past_bytes()
    }

    fn past_bytes(&self) -> u64 {
        self.past.iter().map(Revision::bytes).sum()
    }
}

impl OwnerResources {
    /// Drops a revision. Content that is being read stays in memory and counts.
    fn remove(&mut self, revision: Revision) {
        let Revision { found, blob } = revision;
        drop(found);

        let blob = {
            let weak = Arc::downgrade(&blob);
            drop(blob);
            weak
        };

        if blob.strong_count() == 0 {
            return;
        }

        if self.removed.len() == self.removed.capacity() {
            self.removed.retain(|blob| blob.strong_count() > 0);
        }
        self.removed.push_back(blob);
    }

    /// Frees removed content, oldest first, until `is_enough` or nothing is left.
    fn discard_removed(&mut self, is_enough: impl Fn() -> bool) {
        while !is_enough()
            && let Some(blob) = self.removed.pop_front()
        {
            if let Some(blob) = blob.upgrade() {
                blob.discard();
            }
        }
    }
}

impl Resources {
    /// A charge of no bytes for `owner`.
    pub(super) fn charge(&mut self, owner: &Owner) -> Charge {
        let owned = self.owners.get_or_insert_with(owner.clone(), OwnerResources::default);
        Charge::new(&owned.account, &self.total)
    }

    /// Charges more bytes for an upload. If they do not fit, frees removed content that is still
    /// being read, and then earlier revisions of the same resource.
    ///
    /// # Errors
    /// [`StoreError::Full`]. The error of the limit of all owners names its setting.
    pub(super) fn reserve(
        &mut self,
        owner: &Owner,
        uri: &ResourceUri,
        charge: &mut Charge,
        bytes: u64,
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let Some(owned) = self.owners.get_mut(owner) else {
            return Err(StoreError::NotFound { uri: uri.clone() });
        };
        let account = owned.account.clone();
        let total = self.total.clone();
        let missing = || {
            let of_owner = (account.bytes() + bytes).saturating_sub(limits.per_owner.bytes);
            of_owner.max((total.bytes() + bytes).saturating_sub(limits.bytes))
        };

        owned.discard_removed(|| missing() == 0);
        self.drop_past(owner, uri, missing());

        let own = charge.bytes();
        let used_by_owner = account.bytes() - own;
        if used_by_owner + own + bytes > limits.per_owner.bytes {
            return Err(limits.per_owner.out_of_bytes(used_by_owner, own + bytes));
        }
        let used = total.bytes() - own;
        if used + own + bytes > limits.bytes {
            return Err(StoreError::Full(format!(
                "The memory store is full: {used} of {} bytes are used (memory.bytes). Delete resources, or wait until some expire.",
                limits.bytes
            )));
        }

        charge.grow(bytes);
        Ok(())
    }

    /// Drops earlier revisions of a resource, oldest first, to free `bytes`. Drops none if all of
    /// them together would not free as much.
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
            freed += oldest.bytes();
            oldest.blob.discard();
        }

        self.usage.bytes -= freed;
    }

    /// The owners with resources among the first `limit` owners after `after`, ordered by name.
    pub(super) fn owners(&self, after: Option<&str>, limit: usize) -> OwnerPage {
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(Owner::new(after)));
        let found = self.owners.range((from, Bound::Unbounded)).take(limit);

        let mut owners = Vec::new();
        let mut seen = 0;
        let mut last = None;
        for (owner, owned) in found {
            seen += 1;
            last = Some(owner);
            if !owned.resources.is_empty() {
                owners.push(owner.clone());
            }
        }

        let next = last.filter(|_| seen == limit).map(Owner::to_string);
        OwnerPage { owners, next }
    }

    /// Whether `bytes` more fit into the limit of all owners.
    pub(super) fn has_room(&self, bytes: u64, limits: &MemoryLimits) -> bool {
        self.total.bytes().saturating_add(bytes) <= limits.bytes
    }

    /// Forgets an owner without resources, at once or when the owner's last bytes are freed.
    pub(super) fn forget_if_idle(&mut self, owner: &Owner) {
        let Some(owned) = self.owners.get_mut(owner) else { return };
        if !owned.resources.is_empty() {
            return;
        }

        // An upload that has reserved nothing yet shares the account.
        if owned.account.is_unused() {
            self.owners.remove(owner);
        } else if !std::mem::replace(&mut owned.is_leaving, true) {
            self.leaving.push_back(owner.clone());
        }
    }

    /// Checks one of the owners who had bytes in memory without resources, and forgets it if idle.
    pub(super) fn forget_one_idle_owner(&mut self) {
        let Some(owner) = self.leaving.pop_front() else { return };
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.is_leaving = false;
        }

        self.forget_if_idle(&owner);
    }

    pub(super) fn get(&self, owner: &Owner, uri: &ResourceUri) -> Option<&StoredResource> {
        Some(&self.owners.get(owner)?.resources.get(uri)?.current.found)
    }

    /// The revisions of a resource, oldest first and the current one last.
    pub(super) fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Vec<StoredResource> {
        let revisions = self.owners.get(owner).and_then(|owned| owned.resources.get(uri));
        let Some(Revisions { current, past }) = revisions else { return Vec::new() };

        let current = &current.found;
        let past = past.iter().map(|past| past.found.clone().earlier_than(&current.entry));
        past.chain([current.clone()]).collect()
    }

    /// Checks that the quota of `owner` allows one more resource.
    pub(super) fn check_count(&self, owner: &Owner, quota: OwnerQuota) -> Result<(), StoreError> {
        let count = self.owners.get(owner).map_or(0, |owned| owned.resources.len() as u64);
        if count >= quota.resources {
            return Err(quota.out_of_resources(count));
        }
        Ok(())
    }

    /// Inserts a resource whose bytes are reserved. The previous revision becomes an earlier one; at
    /// most `revisions` remain, including this one.
    pub(super) fn insert(
        &mut self,
        found: StoredResource,
        blob: Arc<MemoryBlob>,
        revisions: usize,
    ) {
        let entry = Arc::clone(&found.entry);
        let mut past = VecDeque::new();
        if let Some(previous) = self.take(&entry.owner, &entry.uri) {
            past = previous.past;
            past.push_back(previous.current);
        }

        let owned = self.owners.get_or_insert_with(entry.owner.clone(), OwnerResources::default);
        while past.len() >= revisions.max(1)
            && let Some(oldest) = past.pop_front()
        {
            owned.remove(oldest);
        }

        self.expired.forget(&entry.owner, &entry.uri);

        let revisions = Revisions { current: Revision { found, blob }, past };

        self.usage.resources += 1;
        self.usage.bytes += revisions.bytes();
        owned.resources.insert(entry.uri.clone(), revisions, entry.expires);

        let next = owned.resources.next_expiry();
        self.owners.renew(&entry.owner, next);
    }

    /// Removes a resource from the maps. Its bytes count until the returned value is dropped.
    fn take(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Revisions> {
        let owned = self.owners.get_mut(owner)?;
        let revisions = owned.resources.remove(uri)?;

        let next = owned.resources.next_expiry();
        self.owners.renew(owner, next);

        self.usage.resources -= 1;
        self.usage.bytes -= revisions.bytes();
        Some(revisions)
    }

    /// Removes a resource with all its revisions. Content that is being read stays in memory.
    pub(super) fn remove(&mut self, owner: &Owner, uri: &ResourceUri) -> Option<Arc<Entry>> {
        let Revisions { current, past } = self.take(owner, uri)?;
        let entry = Arc::clone(&current.found.entry);

        if let Some(owned) = self.owners.get_mut(owner) {
            past.into_iter().chain([current]).for_each(|revision| owned.remove(revision));
        }

        self.forget_if_idle(owner);
        Some(entry)
    }

    pub(super) fn usage(&self) -> Usage {
        // All other bytes are reserved, or of removed content that is still being read.
        let reserved = self.total.bytes().saturating_sub(self.usage.bytes);
        Usage { reserved, ..self.usage }
    }

    pub(super) fn usage_of(&self, owner: &Owner) -> Usage {
        self.owners.get(owner).map_or_else(Usage::default, |owned| Usage {
            resources: owned.resources.len() as u64,
            bytes: owned.account.bytes(),
            reserved: 0,
        })
    }

    /// Removes up to `limit` resources that have expired at `now`, in the order of their expiry.
    pub(super) fn remove_expired(&mut self, now: Timestamp, limit: usize) -> Vec<Arc<Entry>> {
        let mut removed = Vec::new();
        while removed.len() < limit
            && let Some(owner) = self.owners.next_expired(now).cloned()
        {
            removed.extend(self.remove_expired_of(&owner, now, 1));
        }
        removed
    }

    /// Removes up to `limit` resources of one owner that have expired at `now`.
    pub(super) fn remove_expired_of(
        &mut self,
        owner: &Owner,
        now: Timestamp,
        limit: usize,
    ) -> Vec<Arc<Entry>> {
        let mut removed = Vec::new();
        while removed.len() < limit
            && let Some(owned) = self.owners.get(owner)
            && let Some(uri) = owned.resources.next_expired(now).cloned()
            && let Some(entry) = self.remove(owner, &uri)
        {
            self.expired.remember(owner.clone(), uri, entry.expires);
            removed.push(entry);
        }
        removed
    }

    /// Ends up to `limit` reservations that have expired at `now`. Returns their number.
    pub(super) fn end_reservations(&mut self, now: Timestamp, limit: usize) -> usize {
        let mut ended = 0;
        while ended < limit
            && let Some(owner) = self.reservations.end_next_expired(now)
        {
            self.forget_if_idle(&owner);
            ended += 1;
        }
        ended
    }

    /// The next time at which a resource expires or a reservation ends.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        let next = [self.owners.next_expiry(), self.reservations.next_expiry()];
        next.into_iter().flatten().min()
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
            .range::<str>((from, Bound::Unbounded))
            .take_while(|(uri, _)| uri.as_str().starts_with(prefix))
            .take(limit)
            .map(|(_, revisions)| revisions.current.found.clone())
            .collect()
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources").field("bytes", &self.total.bytes()).finish_non_exhaustive()
    }
}
