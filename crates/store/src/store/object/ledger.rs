//! The ledger of an owner: a sequence of records, one for each change.
//!
//! The process that creates the n-th record has made the n-th change; any other
//! process that tries to must look again. Files and S3 can both create an object
//! only if it does not exist. So a change is atomic, and usage is counted exactly,
//! with any number of instances and if one dies during a change.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use object_store::path::Path;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{
    ObjectState,
    kept::{GRACE, KeptContent},
    layout,
    ledger_reservations::LedgerReservations,
    stored_entry::StoredEntry,
};
use crate::store::{ResourceUri, StoreError};

/// How long a cached tail is used before the ledger is listed again. Must be much less
/// than [`RETENTION`].
const TAIL_TTL: Duration = Duration::from_secs(20);

/// How many changes a cached tail is used for before the ledger is listed again.
const TAIL_MAX_CHANGES: u32 = 1000;

/// How long a record stays after a newer one. While it exists, no process with an old
/// tail can create it a second time.
const RETENTION: chrono::Duration = chrono::Duration::minutes(2);

/// How old a tail may be when an append to it has succeeded. After an older tail, for
/// example of a process that was suspended, the new record may reuse a number whose record
/// was removed.
const MAX_TAIL_AGE: Duration = Duration::from_secs(60);

/// How long after its record a change is still applied by the process that made it.
/// Less than the life of a tombstone, which hides entries that are written late.
const APPLY_DEADLINE: Duration = Duration::from_secs(20);

/// How many owners' tails are cached.
const CACHED_OWNERS: usize = 1024;

/// How long other processes wait for a change to be applied by the process that
/// made it, before they apply it.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two looks for an entry that another process writes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Superseded entries kept for readers that hold an older listing.
pub(super) const SUPERSEDED_ENTRIES: usize = 8;

/// A record of the ledger: a change, and the owner's totals after it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LedgerRecord {
    /// Unique, so that a process recognizes its own record.
    pub(super) id: String,
    /// The bytes that all resources count towards the quota.
    pub(super) bytes: u64,
    pub(super) resources: u64,

    /// Replaced content that is kept for reads that have begun; not among `bytes`.
    #[serde(default, skip_serializing_if = "KeptContent::is_empty")]
    pub(super) kept: KeptContent,
    /// The reservations of uploads; not among `bytes`.
    #[serde(default, skip_serializing_if = "LedgerReservations::is_empty")]
    pub(super) reserved: LedgerReservations,

    pub(super) change: Option<LedgerChange>,
}

/// A change of one resource.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LedgerChange {
    pub(super) uri: ResourceUri,
    /// The new entry, unless the resource was removed.
    pub(super) put: Option<StoredEntry>,
    /// IDs of content that no revision uses any more.
    pub(super) gone: Vec<String>,
    /// When the content in `gone` is removed; at once if not set.
    pub(super) until: Option<Timestamp>,
}

/// The last record of a ledger and its number, 0 if the ledger is empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    pub(super) number: u64,
    pub(super) record: LedgerRecord,
}

/// The cached tail of an owner's ledger. A change holds it, so that the changes of one
/// process queue instead of colliding.
#[derive(Debug, Default)]
pub(super) struct OwnerLock {
    tail: Option<Tail>,
    /// When the ledger was last listed.
    listed: Option<Instant>,
    /// Changes since the last listing.
    changes: u32,
}

impl OwnerLock {
    /// Makes the next call list the ledger, because another instance may have freed quota.
    pub(super) fn list_again(&mut self) {
        self.listed = None;
    }
}

/// The locks of the owners whose tails are cached.
#[derive(Debug, Default)]
pub(super) struct OwnerLocks(Mutex<HashMap<Owner, Arc<tokio::sync::Mutex<OwnerLock>>>>);

impl OwnerLocks {
    pub(super) async fn lock(&self, owner: &Owner) -> OwnedMutexGuard<OwnerLock> {
        let lock = {
            let mut locks = self.0.lock();
            if locks.len() >= CACHED_OWNERS && !locks.contains_key(owner) {
                // A lock in use stays, because a second lock of its owner would not exclude it.
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            }

            Arc::clone(locks.entry(owner.clone()).or_default())
        };

        lock.lock_owned().await
    }
}

impl ObjectState {
    /// The last record of the owner's ledger, with its change applied.
    pub(super) async fn tail(
        &self,
        owner: &Owner,
        lock: &mut OwnerLock,
    ) -> Result<Tail, StoreError> {
        let fresh = lock.listed.is_some_and(|since| since.elapsed() < TAIL_TTL);
        if let Some(tail) = lock.tail.as_ref().filter(|_| fresh && lock.changes < TAIL_MAX_CHANGES)
        {
            return Ok(tail.clone());
        }

        let listing_began = Instant::now();
        let folder = layout::ledger(owner);
        let records: Vec<_> = self.objects.list(&folder).try_collect().await?;
        let number = |path| layout::number(path);
        let last = records.iter().max_by_key(|record| number(&record.location));

        let tail = match last.and_then(|last| number(&last.location).map(|number| (number, last))) {
            None => Tail::default(),
            Some((last, newest)) => {
                let is_old = |record: &&object_store::ObjectMeta| {
                    newest.last_modified - record.last_modified > RETENTION
                };
                let mut old: Vec<u64> = records
                    .iter()
                    .filter(is_old)
                    .filter_map(|record| number(&record.location))
                    .filter(|n| *n < last)
                    .collect();

                // Oldest first, so that a record exists as long as any record before it.
                old.sort_unstable();
                for number in old {
                    self.objects.remove(&layout::ledger_record(&folder, number)).await?;
                }

                let cached = lock.tail.take().filter(|tail| tail.number == last);
                match cached {
                    Some(tail) => tail,
                    None => {
                        let tail = self.read_record(&folder, last).await?;
                        self.ensure_applied(owner, &tail).await?;
                        tail
                    }
                }
            }
        };

        *lock = OwnerLock { tail: Some(tail.clone()), listed: Some(listing_began), changes: 0 };
        Ok(tail)
    }

    pub(super) async fn read_record(&self, ledger: &Path, number: u64) -> Result<Tail, StoreError> {
        let path = layout::ledger_record(ledger, number);
        let Some(bytes) = self.objects.get(&path).await? else {
            return Err(self.objects.failed(format!("{path} is missing")));
        };

        let record =
            serde_json::from_slice(&bytes).map_err(|error| self.objects.damaged(&path, &error))?;
        Ok(Tail { number, record })
    }

    /// Appends a record after `tail` and applies its change, if it has one. `listed` are the
    /// change numbers of the resource's entries. Returns `false` if another process appended its
    /// record first.
    pub(super) async fn append(
        &self,
        owner: &Owner,
        lock: &mut OwnerLock,
        tail: &Tail,
        next: LedgerRecord,
        listed: &[u64],
    ) -> Result<bool, StoreError> {
        let begun = Instant::now();
        let number = tail.number + 1;
        let folder = layout::ledger(owner);
        let path = layout::ledger_record(&folder, number);
        let record = serde_json::to_vec(&next).expect("it is JSON");
        let tail_age = lock.listed.map_or(MAX_TAIL_AGE, |listed| listed.elapsed());

        // The tail is unknown until the append has succeeded.
        lock.tail = None;
        if !self.objects.create(&path, record).await? {
            // A retried request finds the object that its first attempt created.
            let existing = self.read_record(&folder, number).await?;
            if existing.record.id != next.id {
                return Ok(false);
            }
        }

        let created = Instant::now();
        if tail_age + begun.elapsed() > MAX_TAIL_AGE
            && tail.number > 0
            && !self.objects.exists(&layout::ledger_record(&folder, tail.number)).await?
        {
            // The tail was not the last record any more, and newer records were removed.
            self.objects.remove(&path).await?;
            return Ok(false);
        }

        self.total_usage.change(&tail.record, &next, self.clock.now());
        let tail = Tail { number, record: next };

        // After the deadline, the next change of the owner applies this change.
        if created.elapsed() < APPLY_DEADLINE {
            let applying = tokio::time::timeout(APPLY_DEADLINE, self.apply(owner, &tail, listed));
            match applying.await {
                Ok(applied) => applied?,
                Err(_) => return Err(self.objects.failed("a change takes too long to apply")),
            }
        }

        lock.tail = Some(tail);
        lock.changes += 1;
        Ok(true)
    }

    /// Waits until the process that made the change has applied it, and applies it itself after
    /// [`APPLY_TIMEOUT`].
    async fn ensure_applied(&self, owner: &Owner, tail: &Tail) -> Result<(), StoreError> {
        let Some(LedgerChange { uri, put, .. }) = &tail.record.change else { return Ok(()) };
        if put.is_some() {
            let entry = layout::entry(&layout::resource(owner, uri), tail.number);
            let begin = Instant::now();

            while begin.elapsed() < APPLY_TIMEOUT {
                if self.objects.exists(&entry).await? {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }

        let files = self.objects.files_in(&layout::resource(owner, uri)).await?;
        let listed: Vec<u64> = files.iter().filter_map(layout::number).collect();
        self.apply(owner, tail, &listed).await
    }

    /// Writes the new entry or a tombstone, and removes the replaced content and entries. `listed`
    /// are the change numbers of the resource's entries before the change.
    ///
    /// Idempotent, also when run concurrently: an entry's path has its change number,
    /// so no entry replaces another. The tombstone of a removed resource hides entries of earlier
    /// changes that another process still writes.
    async fn apply(&self, owner: &Owner, tail: &Tail, listed: &[u64]) -> Result<(), StoreError> {
        let Some(LedgerChange { uri, put, gone, until }) = &tail.record.change else {
            return Ok(());
        };
        let resource = layout::resource(owner, uri);

        if let Some(entry) = put {
            let entry = serde_json::to_vec(entry).expect("it is JSON");
            self.objects.put(&layout::entry(&resource, tail.number), entry).await?;
        } else {
            self.objects.put(&layout::tombstone(&resource, tail.number), "gone").await?;
            let end = until.unwrap_or_else(|| self.clock.now().saturating_add(GRACE));
            self.schedule.remove_tombstone_at(end, owner, uri, tail.number).await?;
        }

        // Content goes before the entries, so that content without an entry is always scheduled.
        match until {
            Some(until) if !gone.is_empty() => {
                self.schedule.remove_content_at(*until, owner, uri, gone).await?;
            }
            _ => self.remove_contents(&resource, gone).await?,
        }

        let is_earlier_revision = |number: &u64| {
            put.iter().flat_map(|entry| &entry.past).any(|earlier| earlier.number == *number)
        };
        let mut superseded = listed.to_vec();
        superseded.retain(|number| *number < tail.number && !is_earlier_revision(number));
        superseded.sort_unstable_by(|one, other| other.cmp(one));

        let stay = if put.is_some() { SUPERSEDED_ENTRIES } else { 0 };
        for number in superseded.into_iter().skip(stay) {
            self.objects.remove(&layout::entry(&resource, number)).await?;
        }

        Ok(())
    }

    /// Removes the objects of content with these IDs.
    pub(super) async fn remove_contents(
        &self,
        resource: &Path,
        ids: &[String],
    ) -> Result<(), StoreError> {
        for id in ids {
            self.objects.remove(&layout::content(resource, id)).await?;
        }
        Ok(())
    }
}
