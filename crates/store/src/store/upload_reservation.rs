//! [`UploadReservation`]: the quota that an upload holds before its commit, so that all instances
//! count it. It ends by itself unless it is extended.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, random::Random};

use super::{OwnerQuota, ResourceUri, StoreError, uploads_in_progress::UploadInProgress};

/// How long an upload counts unless more content arrives or it is committed.
pub(super) const UPLOAD_TTL: Duration = Duration::from_secs(15 * 60);

/// Announced content up to this size is counted by its commit: one request then does both.
const UNRESERVED: u64 = 1 << 20;

/// A backend that reserves quota for uploads.
pub(super) trait ReservingBackend: Send + Sync {
    /// An upload reserves quota as soon as so many of its bytes are not reserved.
    const STEP: u64;

    fn quota(&self) -> OwnerQuota;

    fn random(&self) -> &Random;

    /// The time by which reservations end.
    fn now(&self) -> Timestamp;

    /// Counts the bytes of an upload that are not reserved, where the backend counts them.
    fn begin_upload(&self, owner: &Owner) -> Option<UploadInProgress>;

    /// Reserves at least `bytes` under an ID. The backend counts `unreserved` of them so far.
    fn reserve_upload(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        unreserved: u64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The reservation of one upload.
pub(super) struct UploadReservation<B> {
    backend: Arc<B>,
    owner: Owner,
    uri: ResourceUri,
    id: String,

    /// Whether the caller made the reservation before the upload, for all of its content.
    is_given: bool,
    /// The reserved bytes, and when they were last reserved.
    reserved: Option<(u64, Timestamp)>,
    /// The bytes that only this process counts.
    in_progress: Option<UploadInProgress>,
}

impl<B: ReservingBackend> UploadReservation<B> {
    /// The reservation with the ID `given`, or a new reservation of no bytes.
    pub(super) fn new(
        backend: &Arc<B>,
        owner: &Owner,
        uri: &ResourceUri,
        given: Option<&str>,
    ) -> Self {
        Self {
            id: given.map_or_else(|| backend.random().id(), str::to_owned),
            backend: Arc::clone(backend),
            owner: owner.clone(),
            uri: uri.clone(),
            is_given: given.is_some(),
            reserved: None,
            in_progress: backend.begin_upload(owner),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the reservation was made before the upload, so that it outlives a failed upload.
    pub(super) fn is_given(&self) -> bool {
        self.is_given
    }

    /// Whether this upload has reserved anything.
    pub(super) fn is_used(&self) -> bool {
        self.reserved.is_some()
    }

    /// The bytes that this upload has reserved.
    pub(super) fn bytes(&self) -> u64 {
        self.reserved.map_or(0, |(bytes, _)| bytes)
    }

    /// The bytes of this upload that only this process counts.
    pub(super) fn unreserved(&self) -> u64 {
        self.in_progress.as_ref().map_or(0, UploadInProgress::bytes)
    }

    /// Reserves the announced size of an upload.
    pub(super) async fn announce(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.backend.quota().check_upload(bytes)?;
        if self.is_given || bytes <= UNRESERVED { Ok(()) } else { self.reserve(bytes).await }
    }

    /// Makes sure that at least `bytes` count, and extends the reservation when it is old. All
    /// but the last few bytes are reserved.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.backend.quota().check_upload(bytes)?;
        if self.is_given {
            return Ok(());
        }

        let reserved = self.bytes();
        let beyond = bytes.saturating_sub(reserved);
        self.set_unreserved(beyond);

        let age = self.reserved.map_or(Duration::ZERO, |(_, at)| self.backend.now().since(at));
        if beyond < B::STEP && age < UPLOAD_TTL / 2 {
            return Ok(());
        }
        self.reserve(bytes.max(reserved)).await
    }

    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        // The backend may have the reservation even if this call gets no answer, or is dropped
        // while it waits. An extension that fails leaves the reservation as old as it is, so that
        // the next call tries again.
        let now = self.backend.now();
        self.reserved.get_or_insert((0, now));

        let unreserved = self.unreserved();
        self.backend.reserve_upload(&self.owner, &self.uri, &self.id, bytes, unreserved).await?;

        self.reserved = Some((bytes, now));
        self.set_unreserved(0);
        Ok(())
    }

    fn set_unreserved(&mut self, bytes: u64) {
        if let Some(in_progress) = &mut self.in_progress {
            in_progress.set(bytes);
        }
    }

    /// Forgets what this upload has reserved, because the caller or a commit ends it. Returns
    /// whether there was anything.
    pub(super) fn forget(&mut self) -> bool {
        self.reserved.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use larder_runtime::clock::{Clock, ManualClock};
    use parking_lot::Mutex;

    use super::*;
    use crate::store::uploads_in_progress::UploadsInProgress;

    const STEP: u64 = 1000;

    /// A backend that notes each reservation: the bytes, and how many of them it counts so far.
    struct NotingBackend {
        clock: ManualClock,
        random: Random,
        uploads: UploadsInProgress,
        reserved: Mutex<Vec<(u64, u64)>>,
        is_full: AtomicBool,
    }

    impl NotingBackend {
        fn new(is_full: bool) -> Arc<Self> {
            Arc::new(Self {
                clock: ManualClock::new(),
                random: Random::counting(),
                uploads: UploadsInProgress::default(),
                reserved: Mutex::default(),
                is_full: AtomicBool::new(is_full),
            })
        }

        fn upload(self: &Arc<Self>, given: Option<&str>) -> UploadReservation<Self> {
            let uri = ResourceUri::parse("x:1").expect("it is a URI");
            UploadReservation::new(self, &owner(), &uri, given)
        }

        /// The reservations since the last call.
        fn take(&self) -> Vec<(u64, u64)> {
            std::mem::take(&mut self.reserved.lock())
        }
    }

    impl ReservingBackend for NotingBackend {
        const STEP: u64 = STEP;

        fn quota(&self) -> OwnerQuota {
            OwnerQuota { bytes: 10 << 20, ..OwnerQuota::default() }
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
            _owner: &Owner,
            _uri: &ResourceUri,
            _id: &str,
            bytes: u64,
            unreserved: u64,
        ) -> Result<(), StoreError> {
            self.reserved.lock().push((bytes, unreserved));
            let is_full = self.is_full.load(Ordering::Relaxed);
            if is_full { Err(StoreError::Full("full".to_owned())) } else { Ok(()) }
        }
    }

    fn owner() -> Owner {
        Owner::new("alice")
    }

    #[tokio::test]
    async fn bytes_are_reserved_in_steps_and_counted_by_this_process_until_then() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(None);

        upload.cover(STEP - 1).await.expect("it fits");
        assert_eq!((backend.take(), backend.uploads.bytes(&owner())), (vec![], STEP - 1));

        upload.cover(STEP).await.expect("it fits");
        assert_eq!((backend.take(), backend.uploads.bytes(&owner())), (vec![(STEP, STEP)], 0));
        assert_eq!(upload.bytes(), STEP);

        upload.cover(STEP + 7).await.expect("it fits");
        assert_eq!((backend.take(), upload.unreserved()), (vec![], 7));
        drop(upload);
        assert_eq!(backend.uploads.bytes(&owner()), 0);
    }

    #[tokio::test]
    async fn a_reservation_is_extended_before_it_ends() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(None);
        upload.announce(5 << 20).await.expect("it fits");
        assert_eq!(backend.take(), [(5 << 20, 0)]);

        backend.clock.advance((UPLOAD_TTL / 2).saturating_sub(Duration::from_millis(1)));
        upload.cover(1).await.expect("it is reserved");
        assert!(backend.take().is_empty());

        backend.clock.advance(Duration::from_millis(1));
        upload.cover(2).await.expect("it is extended");
        assert_eq!(backend.take(), [(5 << 20, 0)], "as many bytes as before");
    }

    #[tokio::test]
    async fn an_extension_that_failed_is_tried_again() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(None);
        upload.cover(STEP).await.expect("it fits");
        backend.take();

        backend.clock.advance(UPLOAD_TTL / 2);
        backend.is_full.store(true, Ordering::Relaxed);
        assert!(upload.cover(STEP + 1).await.is_err());
        assert_eq!(backend.take(), [(STEP + 1, 1)]);

        backend.is_full.store(false, Ordering::Relaxed);
        upload.cover(STEP + 2).await.expect("it is extended");
        assert_eq!(backend.take(), [(STEP + 2, 2)]);
    }

    #[tokio::test]
    async fn small_announced_content_is_left_to_its_commit() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(None);

        upload.announce(UNRESERVED).await.expect("it fits");
        assert!(backend.take().is_empty() && !upload.is_used());
        upload.announce(UNRESERVED + 1).await.expect("it fits");
        assert!(upload.is_used());
    }

    #[tokio::test]
    async fn a_given_reservation_is_neither_grown_nor_ended_by_the_upload() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(Some("given"));

        upload.announce(5 << 20).await.expect("it is reserved");
        upload.cover(5 << 20).await.expect("it is reserved");
        assert!(backend.take().is_empty() && upload.is_given());
        assert!(!upload.forget(), "the caller ends it");
        assert_eq!(upload.id(), "given");
    }

    #[tokio::test]
    async fn content_beyond_the_quota_is_refused_before_it_is_reserved() {
        let backend = NotingBackend::new(false);
        let mut upload = backend.upload(None);

        for refused in [upload.announce(11 << 20).await, upload.cover(11 << 20).await] {
            assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
        }
        assert!(backend.take().is_empty() && !upload.forget());
    }

    #[tokio::test]
    async fn a_reservation_without_an_answer_is_ended_all_the_same() {
        let backend = NotingBackend::new(true);
        let mut upload = backend.upload(None);

        assert!(upload.cover(STEP).await.is_err());
        assert_eq!((upload.bytes(), upload.unreserved()), (0, STEP));
        assert!(upload.forget(), "the backend may have reserved it");
    }
}
