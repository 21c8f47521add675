//! What has expired is found by the hour: a file for each resource says when
//! to look at it. The first who looks removes it and tells; the others find
//! nothing left.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::path::Path;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{Inner, change::GRACE, layout, record::Current};
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
    /// Content of it that goes then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
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
        let mut next = self.next.lock();
        if at < *next {
            *next = at;
            self.sooner.notify_one();
        }
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next() <= now
    }

    fn next(&self) -> Timestamp {
        *self.next.lock()
    }

    fn set(&self, at: Timestamp) {
        *self.next.lock() = at;
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
                    tokio::time::sleep(RETRY).await;
                    self.agenda.expect(self.clock.now());
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
        let hours = self.objects.folders(&layout::all_due()).await?;
        let (mut due, mut next) = (Vec::new(), None);
        for hour in hours.iter().filter(|hour| !layout::is_later(hour, soon)) {
            let mut files = self.objects.below(hour);
            while let Some(file) = files.try_next().await? {
                match layout::due_at(&file.location) {
                    Some(at) if at <= now => due.push((at, file.location)),
                    Some(at) => next = Some(next.map_or(at, |next: Timestamp| next.min(at))),
                    None => {}
                }
            }
        }
        due.sort_unstable();
        let looking = stream::iter(due).map(|(_, file)| async move { self.look(&file).await });
        // One that fails keeps no other from being looked at.
        let looked: Vec<_> = looking.buffered(LOOKERS).collect().await;
        looked.into_iter().collect::<Result<(), _>>().map(|()| next)
    }

    /// Puts a resource down to be looked at.
    pub(super) async fn look_at(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(), StoreError> {
        self.put_down(at, owner, uri, &[], layout::resource(owner, uri).as_ref()).await
    }

    /// Puts content down to be removed, unless it is a resource's then.
    pub(super) async fn remove_at(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
        gone: &[String],
    ) -> Result<(), StoreError> {
        self.put_down(at, owner, uri, gone, &gone.concat()).await
    }

    async fn put_down(
        &self,
        at: Timestamp,
        owner: &Owner,
        uri: &ResourceUri,
        gone: &[String],
        key: &str,
    ) -> Result<(), StoreError> {
        let due = Due { owner: owner.clone(), uri: uri.clone(), gone: gone.to_vec() };
        let due = serde_json::to_vec(&due).expect("it is JSON");
        self.objects.put(&layout::due(at, key), due).await?;
        self.agenda.expect(at);
        Ok(())
    }

    /// Looks at the resource that a file names.
    async fn look(self: &Arc<Self>, file: &Path) -> Result<(), StoreError> {
        // Somebody else may have been faster.
        let Some(due) = self.objects.get(file).await? else { return Ok(()) };
        match serde_json::from_slice::<Due>(&due) {
            Ok(Due { owner, uri, gone }) => {
                self.expire(&owner, &uri).await?;
                self.tidy(&owner, &uri, gone).await?;
            }
            Err(error) => tracing::error!(%error, %file, "it does not say what is due"),
        }
        self.objects.remove(file).await
    }

    /// Removes content that has gone, and puts down to be removed what never
    /// came to have an entry.
    async fn tidy(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        mut gone: Vec<String>,
    ) -> Result<(), StoreError> {
        let resource = layout::resource(owner, uri);
        let is_look = gone.is_empty();
        let mut contents: Vec<_> = self.objects.below(&resource).try_collect().await?;
        contents.retain(|file| layout::content_id(&file.location).is_some());
        if contents.is_empty() {
            return Ok(());
        }
        let current = match self.current(owner, uri).await? {
            Some(Current { record: Ok(record), .. }) => Some(record),
            // What cannot be read may be repaired.
            Some(Current { record: Err(_), .. }) if is_look => return Ok(()),
            Some(_) | None => None,
        };
        let is_wanted = |id: &str| current.as_ref().is_some_and(|current| current.wants(id));
        if !is_look {
            gone.retain(|id| !is_wanted(id));
            return self.remove_contents(&resource, &gone).await;
        }
        let now = self.clock.now();
        for file in contents {
            let Some(id) = layout::content_id(&file.location).filter(|id| !is_wanted(id)) else {
                continue;
            };
            let written = u64::try_from(file.last_modified.timestamp_millis()).unwrap_or(0);
            if now.since(Timestamp::from_millis(written)) > ARRIVAL {
                // It may have been replaced just now, and somebody be reading it.
                let at = now.saturating_add(GRACE);
                self.remove_at(at, owner, uri, &[id.to_owned()]).await?;
            } else {
                self.look_at(now.saturating_add(2 * ARRIVAL), owner, uri).await?;
            }
        }
        Ok(())
    }
}
