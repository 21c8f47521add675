//! [`UpcomingFiles`]: the due files of the next minute, so that an expiry needs no listing.

use std::{collections::BTreeSet, time::Duration};

use larder_runtime::clock::Timestamp;
use parking_lot::Mutex;

use super::due::DueFile;

/// The time between listings, which find the due files of other instances.
pub(super) const LISTING_INTERVAL: Duration = Duration::from_secs(30);

/// How far ahead due files are known. More than [`LISTING_INTERVAL`], because a listing may
/// come late.
const HORIZON: Duration = Duration::from_secs(60);

/// The due files that this process knows.
#[derive(Debug, Default)]
pub(super) struct UpcomingFiles {
    known: Mutex<KnownFiles>,
    /// Held during a sweep, so that sweeps run one after the other.
    pub(super) sweeping: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct KnownFiles {
    /// Ordered by their time.
    files: BTreeSet<DueFile>,
    listed: Option<Timestamp>,
    /// The time up to which files are known, once a listing has begun.
    horizon: Option<Timestamp>,
}

impl UpcomingFiles {
    /// The time up to which to list files now; `None` if they were listed recently.
    pub(super) fn to_list(&self, now: Timestamp) -> Option<Timestamp> {
        let mut known = self.known.lock();
        let is_recent =
            |listed: Timestamp| listed <= now && now < listed.saturating_add(LISTING_INTERVAL);

        if known.listed.is_some_and(is_recent) {
            return None;
        }

        // Set before the listing begins, because the listing may miss files written meanwhile.
        let horizon = now.saturating_add(HORIZON);
        known.horizon = Some(horizon);
        Some(horizon)
    }

    /// Adds the files that a listing at `now` has found.
    pub(super) fn listed(&self, now: Timestamp, files: impl IntoIterator<Item = DueFile>) {
        let mut known = self.known.lock();
        known.files.extend(files);
        known.listed = Some(now);
    }

    /// Notes a file that this process has written, if it is due soon.
    pub(super) fn written(&self, file: DueFile) {
        let mut known = self.known.lock();
        if known.horizon.is_some_and(|horizon| file.at <= horizon) {
            known.files.insert(file);
        }
    }

    /// Takes the files that are due.
    pub(super) fn take(&self, now: Timestamp) -> Vec<DueFile> {
        let mut known = self.known.lock();
        let mut due = Vec::new();

        while known.files.first().is_some_and(|file| file.at <= now) {
            due.extend(known.files.pop_first());
        }

        due
    }

    /// The time of the next due file.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.known.lock().files.first().map(|file| file.at)
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    fn file(at: Timestamp) -> DueFile {
        let key = at.as_millis().to_string();
        DueFile { at, path: Path::from(format!("due/{key}")), key }
    }

    #[test]
    fn ten_expiries_a_second_need_a_listing_every_half_minute() {
        let due = UpcomingFiles::default();
        let begin = Timestamp::from_millis(1_000_000);
        let after = |ms| begin.saturating_add(Duration::from_millis(ms));

        let mut listings = 0;
        let mut taken = Vec::new();
        let mut sweep = |now| {
            if due.to_list(now).is_some() {
                listings += 1;
                // Files of another instance, which this process finds only by listing.
                let horizon = now.saturating_add(HORIZON);
                let others = (0..120_000).step_by(1_000).map(|ms| file(after(ms + 50)));
                due.listed(now, others.filter(|file| now < file.at && file.at <= horizon));
            }
            taken.extend(due.take(now));
        };

        sweep(begin);
        for ms in (0..60_000).step_by(50) {
            if ms % 100 == 0 {
                due.written(file(after(ms + 100)));
            }
            // Each expiry runs a sweep, which takes every due file once.
            sweep(after(ms + 50));
        }

        assert_eq!(listings, 3, "at the begin and every half minute");

        let mut expected: Vec<_> = (1..=600).map(|n| file(after(n * 100))).collect();
        expected.extend((0..60).map(|n| file(after(n * 1_000 + 50))));
        expected.sort();
        assert_eq!(taken, expected);
    }
}
