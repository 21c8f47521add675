//! The default backend: this process's memory. It refuses what does not fit
//! and never evicts what it took.

mod shelf;
#[cfg(test)]
mod tests;
mod upload;

pub(super) use upload::MemoryBlob;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use self::shelf::Shelves;
use super::{
    Backend, Change, ChangeFeed, ChangeKind, Found, Lookup, OwnerQuota, ResourceUri, StoreError,
    Upload, Usage,
};
use crate::{auth::Owner, clock::Clock};

/// How many expired resources are removed before others get the lock.
const SWEEP_BATCH: usize = 256;

/// How much the memory backend stores, counted before compression.
#[derive(Debug, Clone)]
pub struct MemoryLimits {
    /// Bytes of content of all owners, unfinished uploads included.
    pub bytes: u64,
    /// The quota of each owner.
    pub per_owner: OwnerQuota,
}

impl Default for MemoryLimits {
    /// 1 GiB in total, and the default quota for each owner.
    fn default() -> Self {
        Self { bytes: 1 << 30, per_owner: OwnerQuota::default() }
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
        self.shelves.lock()
    }

    /// The shelves, with nothing on them that has expired: so nobody else
    /// need think of it, and what has expired takes no one's room.
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        loop {
            let mut shelves = self.lock();
            if !self.sweep(&mut shelves) {
                return shelves;
            }
        }
    }

    /// Removes what has expired; says whether there may be more.
    fn sweep(&self, shelves: &mut Shelves) -> bool {
        let gone = shelves.remove_expired(self.clock.now(), SWEEP_BATCH);
        for entry in &gone {
            self.publish(&entry.owner, &entry.uri, ChangeKind::Expired);
        }
        gone.len() == SWEEP_BATCH
    }

    /// Says what happened. With the lock held, so that changes are heard in
    /// the order in which they are made.
    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        self.feed.publish(Change { owner: owner.clone(), uri: uri.clone(), kind, id: None });
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn shared(&self) -> Option<String> {
        None
    }

    fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    async fn begin(&self, owner: &Owner, uri: &ResourceUri) -> Result<Box<dyn Upload>, StoreError> {
        let (inner, owner) = (Arc::clone(&self.inner), owner.clone());
        Ok(Box::new(upload::MemoryUpload::new(inner, owner, uri.clone())))
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let shelves = self.inner.shelves();
        if let Some(found) = shelves.get(owner, uri) {
            return Ok(Lookup::Found(found.clone()));
        }
        Ok(shelves.expired_at(owner, uri).map_or(Lookup::Missing, Lookup::Expired))
    }

    async fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Result<Vec<Found>, StoreError> {
        Ok(self.inner.shelves().revisions(owner, uri))
    }

    async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        let mut shelves = self.inner.shelves();
        let removed = shelves.remove(owner, uri).is_some();
        if removed {
            self.inner.publish(owner, uri, ChangeKind::Deleted);
        }
        Ok(removed)
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        Ok(self.inner.shelves().page(owner, prefix, after, limit))
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        Ok(self.inner.shelves().usage())
    }

    async fn maintain(&self) {
        loop {
            let sooner = self.inner.sooner.notified();
            while self.inner.sweep(&mut self.inner.lock()) {
                tokio::task::yield_now().await;
            }
            let next = self.inner.lock().next_expiry();
            let due = async {
                match next {
                    Some(next) => self.inner.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = sooner => {}
            }
        }
    }
}
