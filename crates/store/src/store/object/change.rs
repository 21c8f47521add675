//! Writes, deletions and expiries. Each is one record in the owner's ledger.

use std::{panic, sync::Arc};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    ObjectState,
    kept::{GRACE, KeptContent},
    ledger::{LedgerChange, LedgerRecord, Tail},
    stored_entry::{CurrentEntry, EarlierRevision, StoredContent, StoredEntry},
};
use crate::store::{
    Change, ChangeKind, Committed, Draft, Entry, ResourceUri, StoreError, Version, WriteMode,
};

#[derive(Clone)]
enum Operation {
    Put(Box<PutOperation>),
    /// Removes the resource, if it has that version.
    Delete(Option<Version>),
    Expire,
}

/// Commits uploaded content.
#[derive(Clone)]
pub(super) struct PutOperation {
    pub(super) draft: Draft,
    pub(super) content: StoredContent,
    /// Whether the content is that of a stored revision of the resource.
    pub(super) is_shared: bool,
    /// The ID of the upload's reservation.
    pub(super) reservation: String,
    /// Bytes of the upload that only this process counts yet.
    pub(super) unreserved: u64,
}

enum ChangeOutcome {
    Put(Committed),
    Removed,
    Unchanged,
}

/// The result of one attempt at a change.
enum Attempt {
    Done(ChangeOutcome),
    /// Another process appended to the ledger first.
    Overtaken,
    /// The content does not fit into the quota.
    Full(StoreError),
}

/// The entry of a put, if it fits into the quota.
enum Fitting {
    Fits(Box<StoredEntry>),
    Full(StoreError),
}

/// A resource before a change.
struct Predecessor {
    /// Whether the resource has an entry, even a damaged or an expired entry.
    exists: bool,
    /// The entry and its change number. `None` for a damaged entry, which can still be replaced or
    /// deleted.
    entry: Option<(u64, StoredEntry)>,
    /// When the entry expired, if it has.
    expired: Option<Timestamp>,
}

impl Predecessor {
    fn new(current: Option<CurrentEntry>, now: Timestamp) -> Self {
        let exists = current.is_some();
        let entry =
            current.and_then(|CurrentEntry { number, stored }| Some((number, stored.ok()?)));
        let expired = entry
            .as_ref()
            .map(|(_, stored)| &stored.entry)
            .filter(|entry| entry.is_expired(now))
            .map(|entry| entry.expires);
        Self { exists, entry, expired }
    }

    fn stored(&self) -> Option<&StoredEntry> {
        self.entry.as_ref().map(|(_, stored)| stored)
    }

    /// The entry, if it has not expired.
    fn live(&self) -> Option<&Entry> {
        self.stored().filter(|_| self.expired.is_none()).map(|stored| &stored.entry)
    }

    /// Whether a revision of the live resource has this content, in an object.
    fn has_content(&self, content: &StoredContent) -> bool {
        let live = self.stored().filter(|_| self.expired.is_none());
        live.zip(content.object()).is_some_and(|(live, id)| live.has_object(id))
    }

    /// Whether a deletion applies, which may be limited to one version.
    fn is_deleted_by(&self, version: Option<Version>) -> bool {
        match version {
            Some(version) => self.live().is_some_and(|live| Version::from(live) == version),
            None => self.exists,
        }
    }

    /// The earlier revisions of the resource once its live entry is replaced.
    fn to_earlier(&self) -> Vec<EarlierRevision> {
        match &self.entry {
            Some((number, stored)) if self.expired.is_none() => {
                stored.clone().into_earlier(*number)
            }
            Some(_) | None => Vec::new(),
        }
    }
}

impl ObjectState {
    pub(super) async fn put(self: &Arc<Self>, put: PutOperation) -> Result<Committed, StoreError> {
        let owner = put.draft.owner.clone();
        let uri = put.draft.uri.clone();

        match self.change(&owner, &uri, Operation::Put(Box::new(put))).await? {
            ChangeOutcome::Put(committed) => Ok(committed),
            ChangeOutcome::Removed | ChangeOutcome::Unchanged => Err(StoreError::NotFound { uri }),
        }
    }

    pub(super) async fn delete(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        let deleted = self.change(owner, uri, Operation::Delete(version)).await?;
        Ok(matches!(deleted, ChangeOutcome::Removed))
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
    ) -> Result<ChangeOutcome, StoreError> {
        let state = Arc::clone(self);
        let owner = owner.clone();
        let uri = uri.clone();

        self.run_to_end(async move { state.change_to_end(&owner, &uri, &operation).await }).await
    }

    /// Runs a change in its own task, so that it completes even if the caller is dropped.
    pub(super) async fn run_to_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        tokio::spawn(change).await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(error) => Err(self.objects.failed(error)),
        })
    }

    /// Tries a change until it is made or refused.
    async fn change_to_end(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: &Operation,
    ) -> Result<ChangeOutcome, StoreError> {
        let mut has_swept = false;

        loop {
            match self.try_change(owner, uri, operation, has_swept).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Overtaken => {}
                Attempt::Full(full) if has_swept => return Err(full),
                Attempt::Full(_) => {
                    // Expired resources that are not removed yet may use the quota.
                    if let Err(error) = self.sweep().await {
                        tracing::debug!(%error, "cannot remove expired resources to free quota");
                    }
                    has_swept = true;
                }
            }
        }
    }

    /// Makes a change, unless another process appends to the ledger meanwhile.
    async fn try_change(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: &Operation,
        has_swept: bool,
    ) -> Result<Attempt, StoreError> {
        let mut lock = self.locks.lock(owner).await;
        let mut tail = self.tail(owner, &mut lock).await?;

        let reading = self.current_and_listed(owner, uri);
        let scheduling = self.schedule_expiry_of(operation);
        let ((current, listed), ()) = tokio::try_join!(reading, scheduling)?;
        let now = self.clock.now();
        let before = Predecessor::new(current, now);

        let put = match operation {
            Operation::Put(put) => match self.fit(put, &before, &mut tail, now, has_swept).await? {
                Fitting::Fits(entry) => Some(*entry),
                Fitting::Full(full) => {
                    lock.list_again();
                    return Ok(Attempt::Full(full));
                }
            },
            Operation::Delete(version) if before.is_deleted_by(*version) => None,
            Operation::Expire if before.expired.is_some() => None,
            Operation::Delete(_) | Operation::Expire => {
                return Ok(Attempt::Done(ChangeOutcome::Unchanged));
            }
        };

        // Reads of the replaced content that have begun can finish, unless its space is needed.
        let is_kept = before.live().is_some() && !self.is_disk_low().await;
        let until = is_kept.then(|| now.saturating_add(GRACE));
        let mut next = self.next_record(&tail, &before, uri, put.clone(), until);
        if let Operation::Put(put) = operation {
            next.reserved = next.reserved.without(now, &put.reservation);
        }
        if !self.append(owner, &mut lock, &tail, next, &listed).await? {
            return Ok(Attempt::Overtaken);
        }

        // The lock is still held, so that changes are published in their order.
        Ok(Attempt::Done(self.publish_change(owner, uri, put, &before)))
    }

    /// The entry of a put, with the earlier revisions that fit into the quota beside it. Once
    /// expired resources have been swept, also removes kept content to free quota.
    async fn fit(
        &self,
        put: &PutOperation,
        before: &Predecessor,
        tail: &mut Tail,
        now: Timestamp,
        has_swept: bool,
    ) -> Result<Fitting, StoreError> {
        let PutOperation { draft, content, is_shared, reservation, unreserved } = put;
        let missing = || StoreError::NotFound { uri: draft.uri.clone() };
        if *is_shared && !before.has_content(content) {
            return Err(missing());
        }
        let entry = draft.clone().apply_to(before.live()).ok_or_else(missing)?;
        let past = before.to_earlier();

        let reserved = tail.record.reserved.clone().without(now, reservation).bytes();
        let uploads = self.uploads.bytes(&draft.owner).saturating_sub(*unreserved);
        let fit = |tail: &Tail| {
            let held = tail.record.kept.bytes(now) + reserved + uploads;
            let past = past.clone();
            self.fitting_revisions(tail, held, &entry, before.exists, past, draft.revisions)
        };

        let mut fitting = fit(tail);
        if fitting.is_err() && has_swept && tail.record.kept.bytes(now) > 0 {
            self.remove_kept(&draft.owner).await?;
            tail.record.kept = KeptContent::default();
            fitting = fit(tail);
        }

        Ok(match fitting {
            Ok(past) => Fitting::Fits(Box::new(StoredEntry::new(content.clone(), entry, past))),
            Err(full) => Fitting::Full(full),
        })
    }

    async fn is_disk_low(&self) -> bool {
        self.objects.disk_space().await.is_some_and(|space| space.is_low)
    }

    /// The earlier revisions to keep with a new entry: as many as the quota
    /// allows beside `held` bytes, and at most `revisions` with the new revision.
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
        let max = self.quota.bytes;
        let counted = entry.counted_bytes();

        // The latest revision counts until the new entry is committed.
        let mut used = bytes + held;
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

    /// The ledger record that replaces the predecessor by `put`. Old content is removed at
    /// `until`.
    fn next_record(
        &self,
        tail: &Tail,
        before: &Predecessor,
        uri: &ResourceUri,
        put: Option<StoredEntry>,
        until: Option<Timestamp>,
    ) -> LedgerRecord {
        let LedgerRecord { bytes, resources, ref kept, ref reserved, .. } = tail.record;
        let old = before.stored();
        let size = |stored: Option<&StoredEntry>| stored.map_or(0, StoredEntry::bytes);

        let resources = resources.saturating_sub(u64::from(before.exists));
        // The size of a damaged entry is unknown, so it counts until the owner has no
        // resources left.
        let bytes = if resources == 0 { 0 } else { bytes.saturating_sub(size(old)) };

        let stays = |id: &&String| put.as_ref().is_some_and(|put| put.has_object(id));
        let unused = old.iter().flat_map(|old| old.objects()).filter(|(id, _)| !stays(id));
        let (gone, gone_bytes): (Vec<_>, Vec<_>) = unused.map(|(id, n)| (id.clone(), n)).unzip();
        let kept_bytes = until.map_or(0, |_| gone_bytes.iter().sum());
        let now = self.clock.now();
        let kept = kept.clone().with(now, until.unwrap_or(now), kept_bytes);

        LedgerRecord {
            id: self.random.id(),
            bytes: bytes + size(put.as_ref()),
            resources: resources + u64::from(put.is_some()),
            kept,
            reserved: reserved.clone(),
            change: Some(LedgerChange { uri: uri.clone(), gone, until, put }),
        }
    }

    /// Publishes a change that is in the ledger.
    fn publish_change(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        put: Option<StoredEntry>,
        before: &Predecessor,
    ) -> ChangeOutcome {
        if let Some(at) = before.expired {
            self.expired.remember(owner.clone(), uri.clone(), at);
            self.publish(owner, uri, ChangeKind::Expired);
        }

        let Some(StoredEntry { entry, .. }) = put else {
            if before.expired.is_some() {
                return ChangeOutcome::Unchanged;
            }
            self.publish(owner, uri, ChangeKind::Deleted);
            return ChangeOutcome::Removed;
        };

        let is_new = before.expired.is_some() || !before.exists;
        let change = if is_new { ChangeKind::Created } else { ChangeKind::Updated };
        self.expired.forget(owner, uri);
        self.schedule.wake_at(entry.expires);
        self.publish(owner, uri, change);
        ChangeOutcome::Put(Committed { entry: Arc::new(entry), change })
    }

    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        self.feed.publish(Change { owner: owner.clone(), uri: uri.clone(), kind, id: None });
    }

    /// Schedules the check of a resource whose content is in its entry. The check of any other
    /// resource is scheduled before its content is complete.
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
        let expires = match &draft.mode {
            WriteMode::Create { ttl, .. } | WriteMode::Update { ttl: Some(ttl), .. } => {
                draft.now.saturating_add(*ttl)
            }
            WriteMode::Restore(entry) => entry.expires,
            // The expiry does not change, and its check is already scheduled.
            WriteMode::Update { ttl: None, .. } => return Ok(()),
        };
        self.schedule.check_at(expires, &draft.owner, &draft.uri).await
    }
}
