//! Bytes that count towards the quota without belonging to a revision: deleted content that is
//! still readable, and uploads.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Inner, layout};
use crate::{auth::Owner, clock::Timestamp, store::StoreError};

/// How long replaced or deleted content stays, so that reads that have begun can
/// finish.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The span of time whose removals are counted together, in milliseconds. It bounds the length
/// of the list.
const SPAN: u64 = 5_000;

/// The bytes of kept content, by the time at which the last of them are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Kept(Vec<(Timestamp, u64)>);

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are kept at `now`.
    pub(super) fn bytes(&self, now: Timestamp) -> u64 {
        self.0.iter().filter(|(until, _)| *until > now).map(|(_, bytes)| bytes).sum()
    }

    /// Drops content whose time has ended and adds `bytes` kept until `until`.
    pub(super) fn with(mut self, now: Timestamp, until: Timestamp, bytes: u64) -> Self {
        self.0.retain(|(until, _)| *until > now);
        if bytes == 0 {
            return self;
        }

        let end = Timestamp::from_millis(until.as_millis().div_ceil(SPAN) * SPAN);
        match self.0.last_mut().filter(|(last, _)| *last >= end) {
            Some((_, counted)) => *counted += bytes,
            None => self.0.push((end, bytes)),
        }

        self
    }
}

/// The bytes of this process's uploads beyond their reservations, by owner.
#[derive(Debug, Clone, Default)]
pub(super) struct Uploads(Arc<Mutex<HashMap<Owner, u64>>>);

impl Uploads {
    pub(super) fn bytes(&self, owner: &Owner) -> u64 {
        self.0.lock().get(owner).copied().unwrap_or_default()
    }

    pub(super) fn begin(&self, owner: &Owner) -> Uploading {
        Uploading { uploads: self.clone(), owner: owner.clone(), bytes: 0 }
    }
}

/// Counts bytes of one upload until it is dropped.
pub(super) struct Uploading {
    uploads: Uploads,
    owner: Owner,
    bytes: u64,
}

impl Uploading {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the bytes that the upload counts.
    pub(super) fn set(&mut self, bytes: u64) {
        let mut uploads = self.uploads.0.lock();
        let counted = uploads.entry(self.owner.clone()).or_default();
        *counted = *counted - self.bytes + bytes;
        self.bytes = bytes;

        if *counted == 0 {
            uploads.remove(&self.owner);
        }
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Inner {
    /// Removes the owner's kept content before its time, because the owner needs the quota.
    pub(super) async fn remove_kept(&self, owner: &Owner) -> Result<(), StoreError> {
        let now = self.clock.now();
        let last = now.saturating_add(GRACE);

        for hour in self.objects.folders(&layout::due_folder()).await? {
            if layout::is_later(&hour, last) {
                continue;
            }

            let mut files = self.objects.list(&hour);
            while let Some(file) = files.try_next().await? {
                if layout::is_removal_of(&file.location, owner) {
                    self.remove_early(owner, &file.location).await?;
                }
            }
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_counted_until_their_time_in_few_entries() {
        let at = |millis| Timestamp::from_millis(1_000_000 + millis);
        let mut kept = Kept::default();

        for n in 0..60_000 {
            kept = kept.with(at(n), at(n).saturating_add(GRACE), 1);
        }

        assert_eq!(kept.bytes(at(59_999)), 60_000);
        assert!(kept.0.len() <= 13, "{} entries", kept.0.len());
        assert_eq!(kept.bytes(at(120_000 + SPAN)), 0);
        assert!(kept.with(at(200_000), at(260_000), 0).is_empty());
    }
}
