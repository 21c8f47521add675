//! Reserves quota for uploads, by records of the owner's ledger.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, random::Random};

use super::{ObjectState, content_writer::PART_BYTES, ledger::LedgerRecord};
use crate::store::{
    OwnerQuota, ResourceUri, StoreError,
    quota::MAX_RESERVATIONS,
    upload_reservation::{ReservingBackend, UPLOAD_TTL},
    uploads_in_progress::UploadInProgress,
};

impl ReservingBackend for ObjectState {
    /// A record of the ledger for each part of an upload.
    const STEP: u64 = PART_BYTES as u64;

    fn quota(&self) -> OwnerQuota {
        self.quota
    }

    fn random(&self) -> &Random {
        &self.random
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn begin_upload(&self, owner: &Owner) -> Option<UploadInProgress> {
        Some(self.uploads.begin(owner))
    }

    async fn reserve_upload(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        unreserved: u64,
    ) -> Result<(), StoreError> {
        self.reserve(owner, uri, id, bytes, UPLOAD_TTL, unreserved).await.map(drop)
    }
}

impl ObjectState {
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
        let state = Arc::clone(self);
        let owner = owner.clone();
        let uri = uri.clone();
        let id = id.to_owned();

        let reserving = async move {
            let reserved = state.try_reserve(&owner, &uri, &id, bytes, ttl, unreserved).await;
            if !matches!(reserved, Err(StoreError::Full(_))) {
                return reserved;
            }

            // Expired resources that are not removed yet may use the quota.
            if let Err(error) = state.sweep().await {
                tracing::debug!(%error, "cannot remove expired resources to free quota");
            }
            state.try_reserve(&owner, &uri, &id, bytes, ttl, unreserved).await
        };

        self.run_to_end(reserving).await
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
        let state = Arc::clone(self);
        let owner = owner.clone();
        let id = id.to_owned();

        let releasing = async move {
            let mut lock = state.locks.lock(&owner).await;

            loop {
                let tail = state.tail(&owner, &mut lock).await?;
                let now = state.clock.now();
                let Some((until, bytes)) = tail.record.reserved.of(now, &id) else {
                    return Ok(());
                };

                let mut reserved = tail.record.reserved.clone().without(now, &id);
                if keep > 0 {
                    reserved.add(&id, until, bytes.min(keep));
                }

                let next = LedgerRecord {
                    id: state.random.id(),
                    reserved,
                    change: None,
                    ..tail.record.clone()
                };
                if state.append(&owner, &mut lock, &tail, next, &[]).await? {
                    return Ok(());
                }
            }
        };

        self.run_to_end(releasing).await
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
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::{Backend, ObjectBackend, ObjectLocation};
    use larder_runtime::clock::ManualClock;

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
