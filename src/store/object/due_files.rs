//! The due files of the next minute, so that an expiry needs no listing.

use std::{collections::BTreeSet, time::Duration};

use object_store::path::Path;
use parking_lot::Mutex;

use crate::clock::Timestamp;

/// The time between listings. Other instances write due files, too.
pub(super) const LISTING_INTERVAL: Duration = Duration::from_secs(30);

/// How far ahead due files are known. More than the interval, because a listing may
/// come late.
const HORIZON: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct DueFiles {
    known: Mutex<Known>,
    /// Held by a sweep, so that another one ends after it.
    pub(super) sweeping: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    files: BTreeSet<(Timestamp, Path)>,
    listed: Option<Timestamp>,
    /// Up to when files are known, once a listing has begun.
    horizon: Option<Timestamp>,
}

impl DueFiles {
    /// Up to when files are to be listed now; `None` if they were listed recently.
    pub(super) fn to_list(&self, now: Timestamp) -> Option<Timestamp> {
        let mut known = self.known.lock();
        let is_recent =
            |listed: Timestamp| listed <= now && now < listed.saturating_add(LISTING_INTERVAL);
        if known.listed.is_some_and(is_recent) {
            return None;
        }
        // Before the listing begins: it may miss what is written meanwhile.
        let horizon = now.saturating_add(HORIZON);
        known.horizon = Some(horizon);
        Some(horizon)
    }

    /// Takes over what was listed at that time.
    pub(super) fn listed(
        &self,
        now: Timestamp,
        files: impl IntoIterator<Item = (Timestamp, Path)>,
    ) {
        let mut known = self.known.lock();
        known.files.extend(files);
        known.listed = Some(now);
    }

    /// Notes a file that this process has written, if it is due soon.
    pub(super) fn written(&self, at: Timestamp, file: &Path) {
        let mut known = self.known.lock();
        if known.horizon.is_some_and(|horizon| at <= horizon) {
            known.files.insert((at, file.clone()));
        }
    }

    /// Takes the files that are due.
    pub(super) fn take(&self, now: Timestamp) -> Vec<(Timestamp, Path)> {
        let mut known = self.known.lock();
        let mut due = Vec::new();
        while known.files.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(known.files.pop_first());
        }
        due
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.known.lock().files.first().map(|(at, _)| *at)
    }
}
