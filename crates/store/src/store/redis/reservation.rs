//! Bytes that an upload reserves in Redis before its commit, so that all instances count them.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use tokio::time::Instant;

use super::{RedisState, parts::PART_BYTES};
use crate::store::{ResourceUri, StoreError};

/// Announced content up to this size is not reserved: it is sent and counted with its commit.
const UNRESERVED: u64 = PART_BYTES as u64;

/// The life of a reservation and of uploaded parts, unless more content arrives or the upload is
/// committed.
pub(super) const UPLOAD_TTL: Duration = Duration::from_secs(15 * 60);

/// The reservation of one upload.
pub(super) struct UploadReservation {
    inner: Arc<RedisState>,
    owner: Owner,
    uri: ResourceUri,
    id: String,

    /// Whether the reservation was made before the upload, for all of its content.
    is_given: bool,
    /// The reserved bytes, and when they were last renewed.
    reserved: Option<(u64, Instant)>,
}

impl UploadReservation {
    /// The reservation with the ID `given`, or a new one of no bytes.
    pub(super) fn new(
        inner: Arc<RedisState>,
        owner: Owner,
        uri: ResourceUri,
        given: Option<&str>,
    ) -> Self {
        let id = given.map_or_else(|| inner.random.id(), str::to_owned);
        Self { inner, owner, uri, id, is_given: given.is_some(), reserved: None }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the reservation was made before the upload, so that it outlives a failed upload.
    pub(super) fn is_given(&self) -> bool {
        self.is_given
    }

    /// Whether this upload has reserved anything in Redis.
    pub(super) fn is_used(&self) -> bool {
        self.reserved.is_some()
    }

    /// The bytes that this upload has reserved in Redis.
    pub(super) fn bytes(&self) -> u64 {
        self.reserved.map_or(0, |(bytes, _)| bytes)
    }

    /// Reserves announced content, except content so small that the commit carries it: one round
    /// trip then does both.
    pub(super) async fn announce(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.inner.quota.check_upload(bytes)?;
        if bytes <= UNRESERVED { Ok(()) } else { self.cover(bytes).await }
    }

    /// Makes sure that at least `bytes` are reserved, and renews the reservation when it is old.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        let is_covered = |(reserved, since): (u64, Instant)| {
            bytes <= reserved && since.elapsed() < UPLOAD_TTL / 2
        };
        if self.is_given || self.reserved.is_some_and(is_covered) {
            return Ok(());
        }

        let bytes = self.reserved.map_or(bytes, |(reserved, _)| bytes.max(reserved));

        // A request without a reply may have reserved all the same, so the reservation is in use.
        self.reserved = Some((self.reserved.map_or(0, |(reserved, _)| reserved), Instant::now()));
        self.inner.reserve(&self.owner, &self.uri, &self.id, bytes, UPLOAD_TTL).await?;
        self.reserved = Some((bytes, Instant::now()));
        Ok(())
    }
}
