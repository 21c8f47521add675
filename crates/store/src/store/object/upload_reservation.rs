//! [`UploadReservation`]: the quota that an upload holds before its commit. It ends by itself
//! unless it is extended.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{ObjectState, content_writer::PART_BYTES, uploads_in_progress::UploadInProgress};
use crate::store::{ResourceUri, StoreError};

/// How long an upload counts unless more content arrives or it is committed.
const UPLOAD_TTL: Duration = Duration::from_secs(15 * 60);

/// Announced content up to this size is counted by its commit, and by this process until then.
const UNRESERVED: u64 = 1 << 20;

/// The reservation of one upload.
pub(super) struct UploadReservation {
    state: Arc<ObjectState>,
    owner: Owner,
    uri: ResourceUri,
    id: String,

    /// Whether the caller made the reservation before the upload, for all of its content.
    is_given: bool,
    /// The bytes in the ledger, and when they were last reserved.
    reserved: Option<(u64, Timestamp)>,
    /// The bytes that only this process counts.
    uploading: UploadInProgress,
}

impl UploadReservation {
    /// The reservation with the given ID, or a new reservation of no bytes.
    pub(super) fn new(
        state: &Arc<ObjectState>,
        owner: &Owner,
        uri: &ResourceUri,
        given: Option<&str>,
    ) -> Self {
        Self {
            id: given.map_or_else(|| state.random.id(), str::to_owned),
            state: Arc::clone(state),
            owner: owner.clone(),
            uri: uri.clone(),
            is_given: given.is_some(),
            reserved: None,
            uploading: state.uploads.begin(owner),
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
        self.state.quota.check_upload(bytes)?;
        if self.is_given || bytes <= UNRESERVED { Ok(()) } else { self.reserve(bytes).await }
    }

    /// Makes sure that at least `bytes` count. All but the last few are in the ledger.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.state.quota.check_upload(bytes)?;
        if self.is_given {
            return Ok(());
        }

        let reserved = self.bytes();
        let beyond = bytes.saturating_sub(reserved);
        self.uploading.set(beyond);
        let age = self.reserved.map_or(Duration::ZERO, |(_, at)| self.state.clock.now().since(at));

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
        self.state.reserve(&self.owner, &self.uri, &self.id, bytes, UPLOAD_TTL, own).await?;

        self.reserved = Some((bytes, now));
        self.uploading.set(0);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.state.clock.now()
    }

    /// Forgets the reservation, because the commit has ended it.
    pub(super) fn committed(&mut self) {
        self.reserved = None;
    }

    /// Ends the reservation, if it belongs to this upload alone and has reserved anything.
    pub(super) fn releasing(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.reserved.take()?;
        let state = Arc::clone(&self.state);
        let owner = self.owner.clone();
        let id = self.id.clone();

        Some(async move {
            if let Err(error) = state.release(&owner, &id, 0).await {
                tracing::debug!(%error, "cannot end a reservation; it will end by itself");
            }
        })
    }
}
