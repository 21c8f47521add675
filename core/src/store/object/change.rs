//! Writes, deletions and expiries. Each is one record in the owner's ledger.

use std::sync::Arc;

use super::{
    Inner,
    kept::{GRACE, Kept},
    ledger::{Change, LedgerRecord, Tail},
    stored_entry::{Current, EarlierRevision, StoredContent, StoredEntry},
};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{self, ChangeKind, Committed, Draft, Entry, ResourceUri, StoreError, Version},
};

#[derive(Clone)]
enum Operation {
    Put(Box<Put>),
    /// Removes the resource, if it has that version.
    Delete(Option<Version>),
    Expire,
}

/// Commits uploaded content.
#[derive(Clone)]
pub(super) struct Put {
    pub(super) draft: Draft,
    pub(super) content: StoredContent,
    /// The ID of what the upload has reserved.
    pub(super) reservation: String,
    /// What this process counts for the upload beside that.
    pub(super) unreserved: u64,
}

enum Outcome {
    Put(Committed),
    Removed,
    Unchanged,
}

impl Inner {
    pub(super) async fn put(self: &Arc<Self>, put: Put) -> Result<Committed, StoreError> {
        let (owner, uri) = (put.draft.owner.clone(), put.draft.uri.clone());
        match self.change(&owner, &uri, Operation::Put(Box::new(put))).await? {
            Outcome::Put(committed) => Ok(committed),
            Outcome::Removed | Outcome::Unchanged => Err(StoreError::NotFound { uri }),
        }
    }

    pub(super) async fn delete(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        let deleted = self.change(owner, uri, Operation::Delete(version)).await?;
        Ok(matches!(deleted, Outcome::Removed))
    }

    /// Removes a resource if it has expired.
    pub(super) async fn expire(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(), StoreError> {
        self.change(owner, uri, Operation::Expire).await.map(|_| ())
    }

    /// Runs the operation to its end, even if the caller is dropped.
    async fn change(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: Operation,
    ) -> Result<Outcome, StoreError> {
        let (inner, owner, uri) = (Arc::clone(self), owner.clone(), uri.clone());
        self.to_the_end(async move { inner.change_locked(&owner, &uri, operation).await }).await
    }

    async fn change_locked(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: Operation,
    ) -> Result<Outcome, StoreError> {
        let mut swept = false;
        loop {
            let mut lock = self.locks.lock(owner).await;
            let mut tail = self.tail(owner, &mut lock).await?;
            let reading = self.current_and_listed(owner, uri);
            let scheduling = self.schedule_expiry_of(&operation);
            let ((current, listed), ()) = tokio::try_join!(reading, scheduling)?;
            let exists = current.is_some();
            // A damaged entry can still be replaced or deleted.
            let old = current.and_then(|Current { number, stored }| Some((number, stored.ok()?)));
            let (number, old) = old.unzip();
            let now = self.clock.now();
            let expired = old.as_ref().filter(|old| old.entry.is_expired(now));
            let expired = expired.map(|old| old.entry.expires);
            let living = old.as_ref().filter(|_| expired.is_none()).map(|old| &old.entry);
            let put = match &operation {
                Operation::Put(put) => {
                    let Put { draft, content, reservation, unreserved } = &**put;
                    let missing = || StoreError::NotFound { uri: uri.clone() };
                    let entry = Draft::clone(draft).apply_to(living).ok_or_else(missing)?;
                    let past = old.clone().filter(|_| expired.is_none()).zip(number);
                    let past = past.map_or_else(Vec::new, |(old, number)| old.into_earlier(number));
                    let reserved = tail.record.reserved.clone().without(now, reservation).bytes();
                    let uploads = self.uploads.bytes(owner).saturating_sub(*unreserved);
                    let fit = |tail: &Tail| {
                        let held = tail.record.kept.bytes(now) + reserved + uploads;
                        let (past, max) = (past.clone(), draft.revisions);
                        self.fitting_revisions(tail, held, &entry, exists, past, max)
                    };
                    let mut fitting = fit(&tail);
                    if fitting.is_err() && swept && tail.record.kept.bytes(now) > 0 {
                        self.remove_kept(owner).await?;
                        tail.record.kept = Kept::default();
                        fitting = fit(&tail);
                    }
                    match fitting {
                        Ok(past) => Some(StoredEntry::new(content.clone(), entry, past)),
                        Err(full) => {
                            lock.list_again();
                            drop(lock);
                            if swept {
                                return Err(full);
                            }
                            // Expired resources that are not removed yet may use the quota.
                            if let Err(error) = self.sweep().await {
                                tracing::debug!(%error, "cannot remove expired resources to free quota");
                            }
                            swept = true;
                            continue;
                        }
                    }
                }
                Operation::Delete(Some(version))
                    if living.is_none_or(|living| Version::from(living) != *version) =>
                {
                    return Ok(Outcome::Unchanged);
                }
                Operation::Delete(_) if exists => None,
                Operation::Expire if expired.is_some() => None,
                Operation::Delete(_) | Operation::Expire => return Ok(Outcome::Unchanged),
            };
            // Reads of it that have begun can finish, unless its space is needed.
            let is_kept = old.is_some() && expired.is_none() && !self.is_disk_low().await;
            let until = is_kept.then(|| now.saturating_add(GRACE));
            let mut next = self.next_record(&tail, old.as_ref(), exists, uri, put.clone(), until);
            if let Operation::Put(put) = &operation {
                next.reserved = next.reserved.without(now, &put.reservation);
            }
            if !self.append(owner, &mut lock, &tail, next, &listed).await? {
                continue;
            }
            // The lock is still held, so that changes are published in their order.
            if let Some(at) = expired {
                self.expired.remember(owner.clone(), uri.clone(), at);
                self.publish(owner, uri, ChangeKind::Expired);
            }
            let created = expired.is_some() || !exists;
            return Ok(match put {
                Some(StoredEntry { entry, .. }) => {
                    let change = if created { ChangeKind::Created } else { ChangeKind::Updated };
                    self.expired.forget(owner, uri);
                    self.schedule.wake_at(entry.expires);
                    self.publish(owner, uri, change);
                    Outcome::Put(Committed { entry: Arc::new(entry), change })
                }
                None if expired.is_some() => Outcome::Unchanged,
                None => {
                    self.publish(owner, uri, ChangeKind::Deleted);
                    Outcome::Removed
                }
            });
        }
    }

    async fn is_disk_low(&self) -> bool {
        self.objects.disk_space().await.is_some_and(|space| space.is_low)
    }

    /// The earlier revisions to keep with a new entry: as many as the quota
    /// allows beside `held` bytes, and at most `revisions` with the new one.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the entry itself exceeds the quota.
    fn fitting_revisions(
        &self,
        tail: &Tail,
        held: u64,
        entry: &Entry,
        exists: bool,
        mut past: Vec<EarlierRevision>,
        revisions: usize,
    ) -> Result<Vec<EarlierRevision>, StoreError> {
        let LedgerRecord { bytes, resources, .. } = tail.record;
        let (max, counted) = (self.quota.bytes, entry.counted_bytes());
        let mut used = bytes + held;
        // The latest revision counts until the new entry is committed.
        while used.saturating_add(counted) > max && past.len() > 1 {
            used = used.saturating_sub(past.remove(0).size);
        }
        if used.saturating_add(counted) > max {
            return Err(self.quota.out_of_bytes(bytes + held, counted));
        }
        if !exists && resources >= self.quota.resources {
            return Err(self.quota.out_of_resources(resources));
        }
        let excess = (past.len() + 1).saturating_sub(revisions.max(1));
        past.drain(..excess);
        Ok(past)
    }

    /// The ledger record that replaces `old` by `put`. Old content is removed at
    /// `until`.
    fn next_record(
        &self,
        tail: &Tail,
        old: Option<&StoredEntry>,
        existed: bool,
        uri: &ResourceUri,
        put: Option<StoredEntry>,
        until: Option<Timestamp>,
    ) -> LedgerRecord {
        let LedgerRecord { bytes, resources, ref kept, ref reserved, .. } = tail.record;
        let size = |stored: Option<&StoredEntry>| stored.map_or(0, StoredEntry::bytes);
        let resources = resources.saturating_sub(u64::from(existed));
        // The size of a damaged entry is unknown, so it counts until the owner has no
        // resources left.
        let bytes = if resources == 0 { 0 } else { bytes.saturating_sub(size(old)) };
        let stays = |id: &&String| put.as_ref().is_some_and(|put| put.has_object(id));
        let gone = old.iter().flat_map(|old| old.objects()).filter(|(id, _)| !stays(id));
        let (gone, gone_bytes): (Vec<_>, Vec<_>) = gone.map(|(id, n)| (id.clone(), n)).unzip();
        let kept_bytes = until.map_or(0, |_| gone_bytes.iter().sum());
        let now = self.clock.now();
        let kept = kept.clone().with(now, until.unwrap_or(now), kept_bytes);
        LedgerRecord {
            id: self.random.id(),
            bytes: bytes + size(put.as_ref()),
            resources: resources + u64::from(put.is_some()),
            kept,
            reserved: reserved.clone(),
            change: Some(Change { uri: uri.clone(), gone, until, put }),
        }
    }

    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        let (owner, uri) = (owner.clone(), uri.clone());
        self.feed.publish(store::Change { owner, uri, kind, id: None });
    }

    /// Schedules the check of a resource whose content is in its entry. Others have theirs before
    /// their content is complete.
    async fn schedule_expiry_of(&self, operation: &Operation) -> Result<(), StoreError> {
        match operation {
            Operation::Put(put) if put.content.is_in_entry() => {
                self.schedule_expiry(&put.draft).await
            }
            Operation::Put(_) | Operation::Delete(_) | Operation::Expire => Ok(()),
        }
    }

    /// Schedules a check of the resource for when it will expire.
    pub(super) async fn schedule_expiry(&self, draft: &Draft) -> Result<(), StoreError> {
        let ttl = match &draft.mode {
            store::WriteMode::Create { ttl, .. }
            | store::WriteMode::Update { ttl: Some(ttl), .. } => *ttl,
            // The expiry does not change, and has its check already.
            store::WriteMode::Update { ttl: None, .. } => return Ok(()),
            store::WriteMode::Restore(entry) => {
                return self.schedule_check(entry.expires, &draft.owner, &draft.uri).await;
            }
        };
        self.schedule_check(draft.now.saturating_add(ttl), &draft.owner, &draft.uri).await
    }
}
