//! [`KeptContent`]: replaced and deleted content that is still readable. It counts towards the
//! quota without belonging to a revision.

use std::time::Duration;

use futures_util::TryStreamExt;
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ObjectState, layout};
use crate::store::StoreError;

/// How long replaced or deleted content stays, so that reads that have begun can
/// finish.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The span of time whose removals are counted together, in milliseconds. It bounds the length
/// of the list.
const SPAN: u64 = 5_000;

/// The bytes of kept content, by the time at which the last of them are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KeptContent(Vec<(Timestamp, u64)>);

impl KeptContent {
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

impl ObjectState {
    /// Removes the owner's kept content before its time, because the owner needs the quota.
    pub(super) async fn remove_kept(&self, owner: &Owner) -> Result<(), StoreError> {
        let last = self.clock.now().saturating_add(GRACE);

        // By hours, because the clock of the instance that wrote a file may be ahead.
        let mut files = self.schedule.due.of_hours_until(last).await?;
        while let Some(file) = files.try_next().await? {
            if layout::is_removal_of(&file.key, owner) {
                self.remove_early(owner, &file).await?;
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
        let mut kept = KeptContent::default();

        for n in 0..60_000 {
            kept = kept.with(at(n), at(n).saturating_add(GRACE), 1);
        }

        assert_eq!(kept.bytes(at(59_999)), 60_000);
        assert!(kept.0.len() <= 13, "{} entries", kept.0.len());
        assert_eq!(kept.bytes(at(120_000 + SPAN)), 0);
        assert!(kept.with(at(200_000), at(260_000), 0).is_empty());
    }
}
