//! [`SweepSchedule`]: what the sweeps of a store will check and remove, and when the next one is.

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{
    due::{DueNames, DueQueue},
    layout,
    objects::Objects,
    upcoming::UpcomingFiles,
};
use crate::store::{ResourceUri, StoreError};

/// The content of a due file.
#[derive(Serialize, Deserialize)]
pub(super) struct DueWork {
    pub(super) owner: Owner,
    pub(super) uri: ResourceUri,
    /// IDs of content to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) gone: Vec<String>,
    /// The change number of a tombstone to remove, and with it all earlier entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tombstone: Option<u64>,
}

impl DueWork {
    /// The check of a resource.
    fn check(owner: &Owner, uri: &ResourceUri) -> Self {
        Self { owner: owner.clone(), uri: uri.clone(), gone: Vec::new(), tombstone: None }
    }
}

/// The due files of a store, and the time of the next sweep.
pub(super) struct SweepSchedule {
    pub(super) due: DueQueue,
    /// The due files that this process knows, so that few sweeps list files.
    pub(super) upcoming: UpcomingFiles,

    next: Mutex<Timestamp>,
    /// Notified when the next sweep moves forward.
    pub(super) earlier: Notify,
}

impl SweepSchedule {
    pub(super) fn new(objects: Objects, now: Timestamp) -> Self {
        Self {
            due: DueQueue::new(objects, layout::DUE_FOLDER, DueNames::Millisecond),
            upcoming: UpcomingFiles::default(),
            next: Mutex::new(now),
            earlier: Notify::new(),
        }
    }

    /// Writes a due file that checks a resource.
    pub(super) async fn check_at(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(), StoreError> {
        let key = layout::due_key(&layout::resource(owner, uri));
        self.write(at, &key, DueWork::check(owner, uri)).await
    }

    /// Writes a due file that removes content, unless a revision uses it by then.
    pub(super) async fn remove_content_at(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
        gone: &[String],
    ) -> Result<(), StoreError> {
        let key = layout::removal_key(owner, gone);
        let work = DueWork { gone: gone.to_vec(), ..DueWork::check(owner, uri) };
        self.write(at, &key, work).await
    }

    /// Writes a due file that removes a tombstone.
    pub(super) async fn remove_tombstone_at(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
        number: u64,
    ) -> Result<(), StoreError> {
        let key = layout::due_key(&layout::tombstone(&layout::resource(owner, uri), number));
        let work = DueWork { tombstone: Some(number), ..DueWork::check(owner, uri) };
        self.write(at, &key, work).await
    }

    /// Writes a due file and makes the next sweep no later than its time.
    async fn write(&self, at: Timestamp, key: &str, work: DueWork) -> Result<(), StoreError> {
        let file = self.due.put(at, key, &work).await?;

        self.upcoming.written(file);
        self.wake_at(at);
        Ok(())
    }

    /// Makes the next sweep no later than `at`.
    pub(super) fn wake_at(&self, at: Timestamp) {
        let mut next = self.next.lock();
        if at < *next {
            *next = at;
            self.earlier.notify_one();
        }
    }

    /// The time of the next sweep.
    pub(super) fn next(&self) -> Timestamp {
        *self.next.lock()
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next() <= now
    }

    /// Sets the next sweep, when one begins.
    pub(super) fn set(&self, at: Timestamp) {
        *self.next.lock() = at;
    }
}
