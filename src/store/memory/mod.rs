//! The default backend: this process's memory. It refuses what does not fit
//! and never evicts what it took.

mod shelf;
mod upload;

pub(super) use upload::MemoryBlob;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;

use self::shelf::Shelves;
use super::{
    Backend, Change, ChangeFeed, ChangeKind, Entry, Found, Lookup, ResourceUri, StoreError, Upload,
};
use crate::{auth::Owner, clock::Clock};

/// How many expired entries are removed before others get the lock.
const SWEEP_BATCH: usize = 256;

/// How much may be kept.
#[derive(Debug, Clone)]
pub struct MemoryLimits {
    /// Bytes of content in all, uploads under way included.
    pub bytes: u64,
    /// Bytes of content of one owner.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for MemoryLimits {
    /// 1 GiB in all, 512 MiB and 100,000 resources an owner.
    fn default() -> Self {
        Self { bytes: 1 << 30, bytes_per_owner: 1 << 29, resources_per_owner: 100_000 }
    }
}

/// Keeps resources in memory.
#[derive(Debug)]
pub struct MemoryBackend {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    limits: MemoryLimits,
    feed: ChangeFeed,
    // A plain mutex: it is held for a few map operations and never across an await.
    shelves: Mutex<Shelves>,
    /// Wakes the sweeper when something expires sooner than it thinks.
    sooner: Notify,
}

impl MemoryBackend {
    /// An empty one.
    pub fn new(clock: Arc<dyn Clock>, limits: MemoryLimits) -> Self {
        let inner = Inner {
            clock,
            limits,
            feed: ChangeFeed::new(),
            shelves: Mutex::default(),
            sooner: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        self.feed.publish(Change { owner: owner.clone(), uri: uri.clone(), kind });
    }

    /// Removes what has expired; says whether there may be more.
    fn sweep(&self) -> bool {
        let now = self.clock.now();
        let gone = self.lock().remove_expired(now, SWEEP_BATCH);
        for entry in &gone {
            self.publish(&entry.owner, &entry.uri, ChangeKind::Expired);
        }
        gone.len() == SWEEP_BATCH
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(&self, owner: &Owner) -> Result<Box<dyn Upload>, StoreError> {
        Ok(Box::new(upload::MemoryUpload::new(Arc::clone(&self.inner), owner.clone())))
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let now = self.inner.clock.now();
        let mut shelves = self.inner.lock();
        match shelves.get(owner, uri) {
            Some(found) if !found.entry.is_expired(now) => {
                let Found { entry, blob } = found.clone();
                Ok(Lookup::Found(Found { entry, blob }))
            }
            Some(_) => {
                let expired = shelves.remove(owner, uri).map(|e| e.expires);
                if let Some(at) = expired {
                    shelves.remember_expired(owner, uri, at);
                }
                drop(shelves);
                self.inner.publish(owner, uri, ChangeKind::Expired);
                Ok(expired.map_or(Lookup::Missing, Lookup::Expired))
            }
            None => Ok(shelves.expired_at(owner, uri).map_or(Lookup::Missing, Lookup::Expired)),
        }
    }

    async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        let now = self.inner.clock.now();
        let removed = self.inner.lock().remove(owner, uri);
        let Some(entry) = removed else { return Ok(false) };
        let expired = entry.is_expired(now);
        let kind = if expired { ChangeKind::Expired } else { ChangeKind::Deleted };
        self.inner.publish(owner, uri, kind);
        Ok(!expired)
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, StoreError> {
        let now = self.inner.clock.now();
        Ok(self.inner.lock().page(owner, prefix, after, limit, now))
    }

    async fn maintain(&self) {
        loop {
            let sooner = self.inner.sooner.notified();
            while self.inner.sweep() {
                tokio::task::yield_now().await;
            }
            let next = self.inner.lock().next_expiry();
            let next = next.unwrap_or_else(|| {
                self.inner.clock.now().saturating_add(Duration::from_secs(60 * 60))
            });
            tokio::select! {
                () = self.inner.clock.sleep_until(next) => {}
                () = sooner => {}
            }
        }
    }
}
