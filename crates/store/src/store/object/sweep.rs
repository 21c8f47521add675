//! Removes expired resources and content without an entry.
//!
//! For each resource, a [due file](super::due) of the [schedule](super::schedule) says when to check
//! it. A sweep lists only the files that are due within a minute, at most twice a minute:
//! [`upcoming`](super::upcoming) remembers them. The first instance to process a due file removes the resource and publishes
//! its expiry; the other instances find that the file is gone.

use std::{sync::Arc, time::Duration};

use futures_util::{TryStreamExt, future::BoxFuture};
use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    ObjectState,
    due::{DueFile, process_all},
    kept::GRACE,
    layout,
    schedule::{DueWork, SweepSchedule},
    stored_entry::CurrentEntry,
    upcoming::LISTING_INTERVAL,
};
use crate::store::{ResourceUri, StoreError};

/// The pause after a failed sweep.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How old content without an entry must be before it is removed. Younger
/// content may belong to an upload that is not committed yet.
const ORPHAN_AGE: Duration = Duration::from_secs(60 * 60);

impl ObjectState {
    /// Removes resources when they expire and publishes it. Runs until dropped.
    pub(super) async fn sweep_on_time(self: &Arc<Self>) {
        loop {
            let earlier = self.schedule.earlier.notified();
            tokio::select! {
                () = self.clock.sleep_until(self.schedule.next()) => {}
                () = earlier => continue,
            }

            // Set before the sweep, so that a `wake_at` during it takes effect.
            self.schedule.set(self.clock.now().saturating_add(LISTING_INTERVAL));

            match self.sweep().await {
                Ok(next) => next.into_iter().for_each(|next| self.schedule.wake_at(next)),
                Err(error) => {
                    tracing::debug!(%error, "cannot remove expired resources; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                    self.schedule.wake_at(self.clock.now());
                }
            }
        }
    }

    /// Processes all due files whose time has come. Returns the time of the next due file, if it
    /// is in an hour that was listed.
    pub(super) fn sweep(self: &Arc<Self>) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        // Boxed, because a change may sweep, and a sweep makes changes.
        Box::pin(self.sweep_now())
    }

    async fn sweep_now(self: &Arc<Self>) -> Result<Option<Timestamp>, StoreError> {
        let SweepSchedule { due, upcoming, .. } = &self.schedule;
        let _sweeping = upcoming.sweeping.lock().await;

        let now = self.clock.now();
        if let Some(soon) = upcoming.to_list(now) {
            let found: Vec<_> = due.due_at(soon).await?.try_collect().await?;
            upcoming.listed(now, found);
        }

        let processing = process_all(upcoming.take(now), |file| async move {
            let processed = self.process(&file).await;
            if processed.is_err() {
                upcoming.written(file);
            }
            processed
        });

        processing.await.map(|()| upcoming.next())
    }

    /// Does the check or removal of a due file, and removes the file.
    async fn process(self: &Arc<Self>, file: &DueFile) -> Result<(), StoreError> {
        let Some(DueWork { owner, uri, gone, tombstone }) = self.schedule.due.read(file).await?
        else {
            return Ok(());
        };

        if let Some(number) = tombstone {
            self.remove_tombstone(&owner, &uri, number).await?;
        } else {
            self.expire(&owner, &uri).await?;
            self.remove_unused_content(&owner, &uri, gone).await?;
        }

        self.schedule.due.remove(file).await
    }

    /// Removes a tombstone, after all entries that it hides.
    async fn remove_tombstone(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        number: u64,
    ) -> Result<(), StoreError> {
        let resource = layout::resource(owner, uri);
        let files: Vec<_> = self.objects.list(&resource).try_collect().await?;

        for file in files {
            let file = file.location;
            let hidden = layout::number(&file).or_else(|| layout::tombstone_number(&file));
            if hidden.is_some_and(|hidden| hidden < number) {
                self.objects.remove(&file).await?;
            }
        }

        self.objects.remove(&layout::tombstone(&resource, number)).await
    }

    /// Processes a removal file before its time, if it is of this owner.
    pub(super) async fn remove_early(
        &self,
        owner: &Owner,
        file: &DueFile,
    ) -> Result<(), StoreError> {
        match self.schedule.due.read::<DueWork>(file).await? {
            Some(due) if due.owner == *owner && !due.gone.is_empty() => {
                self.remove_unused_content(owner, &due.uri, due.gone).await?;
                self.schedule.due.remove(file).await
            }
            // The file is another owner's, or another instance has processed it.
            _ => Ok(()),
        }
    }

    /// Removes the content in `gone`. If `gone` is empty, schedules the removal
    /// of content that no revision uses.
    async fn remove_unused_content(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        mut gone: Vec<String>,
    ) -> Result<(), StoreError> {
        let resource = layout::resource(owner, uri);
        let is_check = gone.is_empty();

        let mut contents: Vec<_> = self.objects.list(&resource).try_collect().await?;
        contents.retain(|file| layout::content_id(&file.location).is_some());
        if contents.is_empty() {
            return Ok(());
        }

        let current = match self.current(owner, uri).await? {
            Some(CurrentEntry { stored: Ok(stored), .. }) => Some(stored),
            // An operator may still repair a damaged entry.
            Some(CurrentEntry { stored: Err(_), .. }) if is_check => return Ok(()),
            Some(_) | None => None,
        };

        let is_used = |id: &str| current.as_ref().is_some_and(|current| current.has_object(id));
        if !is_check {
            gone.retain(|id| !is_used(id));
            return self.remove_contents(&resource, &gone).await;
        }

        let now = self.clock.now();

        for file in contents {
            let Some(id) = layout::content_id(&file.location).filter(|id| !is_used(id)) else {
                continue;
            };

            let written = u64::try_from(file.last_modified.timestamp_millis()).unwrap_or(0);
            if now.since(Timestamp::from_millis(written)) > ORPHAN_AGE {
                // Content that was replaced a moment ago may still be read.
                let at = now.saturating_add(GRACE);
                self.schedule.remove_content_at(at, owner, uri, &[id.to_owned()]).await?;
            } else {
                self.schedule.check_at(now.saturating_add(2 * ORPHAN_AGE), owner, uri).await?;
            }
        }

        Ok(())
    }
}
