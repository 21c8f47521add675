//! What has expired is found by the hour: a file for each resource says when
//! to look at it. The first who looks removes it and tells; the others find
//! nothing left.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::{ObjectStoreExt, path::Path};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{Inner, layout};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{ResourceUri, StoreError},
};

/// How long nobody looks where nothing is expected: others may have written.
const ROUND: Duration = Duration::from_secs(30);

/// How long to wait where looking has failed.
const RETRY: Duration = Duration::from_secs(1);

/// How long content may lie without an entry: it may be on its way. The rest
/// was left by somebody who died.
const ARRIVAL: Duration = Duration::from_secs(60 * 60);

/// How many resources are looked at together.
const LOOKERS: usize = 8;

#[derive(Serialize, Deserialize)]
struct Due {
    owner: Owner,
    uri: ResourceUri,
}

/// When to look next.
#[derive(Debug)]
pub(super) struct Agenda {
    next: Mutex<Timestamp>,
    sooner: Notify,
}

impl Agenda {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { next: Mutex::new(now), sooner: Notify::new() }
    }

    /// Something expires then.
    pub(super) fn expect(&self, at: Timestamp) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if at < *next {
            *next = at;
            self.sooner.notify_one();
        }
    }

    fn next(&self) -> Timestamp {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: Timestamp) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

impl Inner {
    /// Removes and tells what expires, when it does, until dropped.
    pub(super) async fn sweep_on_time(self: &Arc<Self>) {
        loop {
            let sooner = self.agenda.sooner.notified();
            tokio::select! {
                () = self.clock.sleep_until(self.agenda.next()) => {}
                () = sooner => continue,
            }
            // Before looking, so that what is expected meanwhile counts.
            self.agenda.set(self.clock.now().saturating_add(ROUND));
            match self.sweep().await {
                Ok(next) => next.into_iter().for_each(|next| self.agenda.expect(next)),
                Err(error) => {
                    tracing::debug!(%error, "what has expired cannot be removed now");
                    self.agenda.expect(self.clock.now().saturating_add(RETRY));
                }
            }
        }
    }

    /// Removes what has expired; says when something expires next, if that is
    /// within this hour.
    pub(super) fn sweep(self: &Arc<Self>) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        // Boxed, since what removes a resource may have to sweep.
        Box::pin(self.sweep_now())
    }

    async fn sweep_now(self: &Arc<Self>) -> Result<Option<Timestamp>, StoreError> {
        let now = self.clock.now();
        let soon = now.saturating_add(ROUND);
        let hours = self.objects.list_with_delimiter(Some(&layout::all_due())).await;
        let hours = hours.map_err(super::unavailable)?.common_prefixes;
        let (mut due, mut next) = (Vec::new(), None);
        for hour in hours.iter().filter(|hour| !layout::is_later(hour, soon)) {
            let mut files = self.objects.list(Some(hour));
            while let Some(file) = files.try_next().await.map_err(super::unavailable)? {
                match layout::due_at(&file.location) {
                    Some(at) if at <= now => due.push((at, file.location)),
                    Some(at) => next = Some(next.map_or(at, |next: Timestamp| next.min(at))),
                    None => {}
                }
            }
        }
        due.sort_unstable();
        let looking = stream::iter(due).map(|(_, file)| async move {
            if let Err(error) = self.look(&file).await {
                tracing::debug!(%error, %file, "an expired resource cannot be removed now");
                return false;
            }
            true
        });
        let failed = looking.buffered(LOOKERS).any(|done| async move { !done }).await;
        Ok(if failed { Some(self.clock.now().saturating_add(RETRY)) } else { next })
    }

    /// Puts a resource down to be looked at.
    pub(super) async fn look_at(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let due = Due { owner: owner.clone(), uri: uri.clone() };
        let due = serde_json::to_vec(&due).expect("it is JSON");
        let path = layout::due(owner, uri, at);
        self.objects.put(&path, due.into()).await.map_err(super::unavailable).map(|_| ())
    }

    /// Looks at the resource that a file names.
    async fn look(self: &Arc<Self>, file: &Path) -> Result<(), StoreError> {
        let due = match self.objects.get(file).await {
            Ok(found) => found.bytes().await.map_err(super::unavailable)?,
            // Somebody else was faster.
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(super::unavailable(error)),
        };
        match serde_json::from_slice::<Due>(&due) {
            Ok(Due { owner, uri }) => {
                self.expire(&owner, &uri).await?;
                self.tidy(&owner, &uri).await?;
            }
            Err(error) => tracing::error!(%error, %file, "it does not say what is due"),
        }
        self.remove(file).await
    }

    /// Removes content that never came to have an entry.
    async fn tidy(&self, owner: &Owner, uri: &ResourceUri) -> Result<(), StoreError> {
        let resource = layout::resource(owner, uri);
        let files: Vec<_> =
            self.objects.list(Some(&resource)).try_collect().await.map_err(super::unavailable)?;
        if files.iter().all(|file| layout::content_id(&file.location).is_none()) {
            return Ok(());
        }
        // What cannot be read may be repaired.
        let current = match self.current(owner, uri).await? {
            Some(Ok(record)) => Some(record),
            Some(Err(_)) => return Ok(()),
            None => None,
        };
        let now = self.clock.now();
        for file in files {
            if Self::is_wanted(current.as_ref(), &file.location) {
                continue;
            }
            let written = u64::try_from(file.last_modified.timestamp_millis()).unwrap_or(0);
            if now.since(Timestamp::from_millis(written)) > ARRIVAL {
                self.remove(&file.location).await?;
            } else {
                self.look_at(owner, uri, now.saturating_add(2 * ARRIVAL)).await?;
            }
        }
        Ok(())
    }
}
