//! What an upload counts in Redis before its commit, so that all instances see it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Inner, parts::PART_BYTES};
use crate::{
    auth::Owner,
    store::{ResourceUri, StoreError},
};

/// Announced content up to this size is counted by its commit, with which it goes.
const UNRESERVED: u64 = PART_BYTES as u64;

/// When an upload no longer counts, and its content expires, unless more arrives or it is
/// committed.
pub(super) const UPLOAD_TTL: Duration = Duration::from_secs(15 * 60);

/// The reservation of one upload.
pub(super) struct Reservation {
    inner: Arc<Inner>,
    owner: Owner,
    uri: ResourceUri,
    id: String,
    /// Whether the reservation is older than the upload, and counts all of its content.
    is_given: bool,
    /// How many bytes are reserved, and since when.
    reserved: Option<(u64, Instant)>,
}

impl Reservation {
    /// The reservation of that ID, or a new one of no bytes.
    pub(super) fn new(
        inner: Arc<Inner>,
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

    /// Whether the upload ends its reservation, however it ends itself.
    pub(super) fn is_given(&self) -> bool {
        self.is_given
    }

    /// Whether this upload has reserved anything in Redis.
    pub(super) fn is_used(&self) -> bool {
        self.reserved.is_some()
    }

    /// How many bytes this upload has reserved in Redis.
    pub(super) fn bytes(&self) -> u64 {
        self.reserved.map_or(0, |(bytes, _)| bytes)
    }

    /// Reserves what is announced. Content that is sent with its commit is left to that, which
    /// costs one round trip in all.
    pub(super) async fn announce(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.inner.quota.check_upload(bytes)?;
        if bytes <= UNRESERVED { Ok(()) } else { self.cover(bytes).await }
    }

    /// Makes sure that at least `bytes` are reserved, for some minutes more.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        let is_covered = |(reserved, since): (u64, Instant)| {
            bytes <= reserved && since.elapsed() < UPLOAD_TTL / 2
        };
        if self.is_given || self.reserved.is_some_and(is_covered) {
            return Ok(());
        }
        let bytes = self.reserved.map_or(bytes, |(reserved, _)| bytes.max(reserved));
        // Even if no reply arrives, it may be reserved.
        self.reserved = Some((self.reserved.map_or(0, |(reserved, _)| reserved), Instant::now()));
        self.inner.reserve(&self.owner, &self.uri, &self.id, bytes, UPLOAD_TTL).await?;
        self.reserved = Some((bytes, Instant::now()));
        Ok(())
    }
}
