//! [`Reservation`]: the quota that an upload holds before its commit. It ends by itself unless it is
//! extended.

use std::{panic, sync::Arc, time::Duration};

use super::{Inner, content_writer::PART_BYTES, kept::Uploading, ledger::LedgerRecord};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{ResourceUri, StoreError, quota::MAX_RESERVATIONS},
};

/// How long an upload counts unless more content arrives or it is committed.
const UPLOAD_TTL: Duration = Duration::from_secs(15 * 60);

/// Announced content up to this size is counted by its commit, and by this process until then.
const UNRESERVED: u64 = 1 << 20;

/// The reservation of one upload.
pub(super) struct Reservation {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    id: String,

    /// Whether the caller made the reservation before the upload, for all of its content.
    is_given: bool,
    /// The bytes in the ledger, and when they were last reserved.
    reserved: Option<(u64, Timestamp)>,
    /// The bytes that only this process counts.
    uploading: Uploading,
}

impl Reservation {
    /// The reservation with the given ID, or a new reservation of no bytes.
    pub(super) fn new(
        inner: &Arc<Inner>,
        owner: &Owner,
        uri: &ResourceUri,
        given: Option<&str>,
    ) -> Self {
        Self {
            id: given.map_or_else(|| inner.random.id(), str::to_owned),
            inner: Arc::clone(inner),
            owner: owner.clone(),
            uri: uri.clone(),
            is_given: given.is_some(),
            reserved: None,
            uploading: inner.uploads.begin(owner),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The bytes of this upload that only this process counts.
    pub(super) fn unreserved(&self) -> u64 {
        self.uploading.bytes()
    }

    /// The bytes of this upload that are in the ledger.
    pub(super) fn bytes(&self) -> u64 {
        self.reserved.map_or(0, |(bytes, _)| bytes)
    }

    /// Reserves the announced size of an upload.
    pub(super) async fn announce(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.inner.quota.check_upload(bytes)?;
        if self.is_given || bytes <= UNRESERVED { Ok(()) } else { self.reserve(bytes).await }
    }

    /// Makes sure that at least `bytes` count. All but the last few are in the ledger.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.inner.quota.check_upload(bytes)?;
        if self.is_given {
            return Ok(());
        }

        let reserved = self.bytes();
        let beyond = bytes.saturating_sub(reserved);
        self.uploading.set(beyond);
        let age = self.reserved.map_or(Duration::ZERO, |(_, at)| self.inner.clock.now().since(at));

        if beyond < PART_BYTES as u64 && age < UPLOAD_TTL / 2 {
            return Ok(());
        }
        self.reserve(bytes.max(reserved)).await
    }

    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        // The ledger may have the reservation even if this call is dropped while it waits.
        let now = self.now();
        self.reserved = Some((self.bytes(), now));

        let own = self.unreserved();
        self.inner.reserve(&self.owner, &self.uri, &self.id, bytes, UPLOAD_TTL, own).await?;

        self.reserved = Some((bytes, now));
        self.uploading.set(0);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Forgets the reservation, because the commit has ended it.
    pub(super) fn committed(&mut self) {
        self.reserved = None;
    }

    /// Ends the reservation, if it belongs to this upload alone and has reserved anything.
    pub(super) fn releasing(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.reserved.take()?;
        let inner = Arc::clone(&self.inner);
        let owner = self.owner.clone();
        let id = self.id.clone();

        Some(async move {
            if let Err(error) = inner.release(&owner, &id, 0).await {
                tracing::debug!(%error, "cannot end a reservation; it will end by itself");
            }
        })
    }
}

impl Inner {
    /// Counts at least `bytes` towards the owner's quota, for `ttl` at least, under the
    /// reservation `id`. `unreserved` of the bytes are counted by this process so far. Returns the
    /// bytes that the reservation had before. Continues if the caller is dropped.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
        unreserved: u64,
    ) -> Result<u64, StoreError> {
        let inner = Arc::clone(self);
        let owner = owner.clone();
        let uri = uri.clone();
        let id = id.to_owned();

        let reserving = async move {
            let reserved = inner.try_reserve(&owner, &uri, &id, bytes, ttl, unreserved).await;
            if !matches!(reserved, Err(StoreError::Full(_))) {
                return reserved;
            }

            // Expired resources that are not removed yet may use the quota.
            if let Err(error) = inner.sweep().await {
                tracing::debug!(%error, "cannot remove expired resources to free quota");
            }
            inner.try_reserve(&owner, &uri, &id, bytes, ttl, unreserved).await
        };

        self.to_the_end(reserving).await
    }

    async fn try_reserve(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
        unreserved: u64,
    ) -> Result<u64, StoreError> {
        let mut lock = self.locks.lock(owner).await;
        loop {
            let tail = self.tail(owner, &mut lock).await?;
            let now = self.clock.now();
            let own = tail.record.reserved.of(now, id);
            let mut reserved = tail.record.reserved.clone().without(now, id);
            if own.is_none() && reserved.count() >= MAX_RESERVATIONS {
                lock.list_again();
                return Err(self.quota.out_of_reservations());
            }

            let uploads = self.uploads.bytes(owner).saturating_sub(unreserved);
            let used = tail.record.bytes + reserved.bytes() + uploads;
            let bytes = own.map_or(bytes, |(_, own)| bytes.max(own));
            let over = used.saturating_add(bytes).saturating_sub(self.quota.bytes);
            // The commit makes room by removing kept content and earlier revisions.
            if over > 0 && self.past_bytes(owner, uri).await? < over {
                lock.list_again();
                return Err(self.quota.out_of_bytes(used, bytes));
            }

            let until = now.saturating_add(ttl);
            let latest = own.map_or(until, |(before, _)| until.max(before));
            reserved.add(id, latest, bytes);
            let next = LedgerRecord {
                id: self.random.id(),
                reserved,
                change: None,
                ..tail.record.clone()
            };
            if self.append(owner, &mut lock, &tail, next, &[]).await? {
                return Ok(own.map_or(0, |(_, own)| own));
            }
        }
    }

    /// Reduces a reservation to `keep` bytes; 0 ends it. Continues if the caller is dropped.
    pub(super) async fn release(
        self: &Arc<Self>,
        owner: &Owner,
        id: &str,
        keep: u64,
    ) -> Result<(), StoreError> {
        let inner = Arc::clone(self);
        let owner = owner.clone();
        let id = id.to_owned();

        let releasing = async move {
            let mut lock = inner.locks.lock(&owner).await;

            loop {
                let tail = inner.tail(&owner, &mut lock).await?;
                let now = inner.clock.now();
                let Some((until, bytes)) = tail.record.reserved.of(now, &id) else {
                    return Ok(());
                };

                let mut reserved = tail.record.reserved.clone().without(now, &id);
                if keep > 0 {
                    reserved.add(&id, until, bytes.min(keep));
                }

                let next = LedgerRecord {
                    id: inner.random.id(),
                    reserved,
                    change: None,
                    ..tail.record.clone()
                };
                if inner.append(&owner, &mut lock, &tail, next, &[]).await? {
                    return Ok(());
                }
            }
        };

        self.to_the_end(releasing).await
    }

    /// The bytes that earlier revisions of the resource count.
    async fn past_bytes(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<u64, StoreError> {
        let current = self.current(owner, uri).await?.and_then(|current| current.stored.ok());
        let past = current.iter().flat_map(|current| &current.past);
        Ok(past.map(|earlier| earlier.size).sum())
    }

    /// Runs a change in its own task, so that it completes even if the caller is dropped.
    pub(super) async fn to_the_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        tokio::spawn(change).await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(error) => Err(self.objects.failed(error)),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{
        clock::ManualClock,
        random::Random,
        store::{Backend, ObjectBackend, ObjectLocation, OwnerQuota},
    };

    #[tokio::test]
    async fn a_reservation_counts_on_both_instances_until_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let ttl = Duration::from_secs(60);
        let instance = async || {
            let url = format!("file://{}", directory.path().display());
            let location = ObjectLocation::open(&url, &Random::system()).await.unwrap();
            let quota = OwnerQuota { bytes: 1 << 20, ..OwnerQuota::default() };
            ObjectBackend::new(location, Arc::new(clock.clone()), Random::system(), quota)
        };
        let a = instance().await;
        let b = instance().await;
        let owner = Owner::new("alice");
        let uri = ResourceUri::parse("x:1").unwrap();
        let reserve =
            async |on: &ObjectBackend, id, bytes| on.reserve(&owner, &uri, id, bytes, ttl).await;

        // Both instances cache the ledger before the other instance changes it.
        for instance in [&a, &b] {
            reserve(instance, "0", 1).await.unwrap();
        }
        a.release(&owner, "0", 0).await.unwrap();

        reserve(&a, "1", 700_000).await.unwrap();
        assert!(matches!(reserve(&b, "2", 700_000).await, Err(StoreError::Full(_))));

        // Any instance extends the reservation by its ID.
        reserve(&b, "1", 800_000).await.unwrap();
        reserve(&b, "1", 1).await.unwrap();
        assert!(matches!(reserve(&a, "2", 300_000).await, Err(StoreError::Full(_))));

        b.release(&owner, "1", 0).await.unwrap();
        reserve(&a, "2", 700_000).await.unwrap();

        // No instance releases the reservation, as after a crash.
        assert!(matches!(reserve(&b, "3", 700_000).await, Err(StoreError::Full(_))));
        clock.advance(ttl);
        reserve(&b, "3", 700_000).await.unwrap();
    }

    #[tokio::test]
    async fn an_owner_has_no_more_reservations_than_a_record_may_hold() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let location = ObjectLocation::open(&url, &Random::system()).await.unwrap();
        let clock = Arc::new(ManualClock::new());
        let backend = ObjectBackend::new(location, clock, Random::system(), OwnerQuota::default());
        let owner = Owner::new("alice");
        let uri = ResourceUri::parse("x:1").unwrap();

        for n in 0..=MAX_RESERVATIONS {
            let ttl = Duration::from_secs(60);
            let reserved = backend.reserve(&owner, &uri, &n.to_string(), 1, ttl).await;
            assert_eq!(reserved.is_ok(), n < MAX_RESERVATIONS, "{reserved:?}");
        }
    }
}
