//! A short-lived cache of sessions.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{auth::Principal, session::Session};

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10_000;

/// Sessions by id, with the time of the lookup. Other instances send a notice when
/// a session ends or changes; the time to live limits how long an entry is used if
/// the notice is lost.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    entries: quick_cache::sync::Cache<Arc<str>, (Arc<Session>, Instant)>,
}

impl Cache {
    pub(super) fn new(ttl: Duration) -> Self {
        Self { ttl, entries: quick_cache::sync::Cache::new(MAX_ENTRIES) }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let (session, since) = self.entries.get(id)?;
        let is_valid = since.elapsed() < self.ttl && session.principal == *principal;
        is_valid.then_some(session)
    }

    pub(super) fn insert(&self, session: &Arc<Session>) {
        self.entries.insert(Arc::clone(&session.id), (Arc::clone(session), Instant::now()));
    }

    pub(super) fn remove(&self, id: &str) {
        self.entries.remove(id);
    }

    pub(super) fn clear(&self) {
        self.entries.clear();
    }

    /// Removes expired entries, so that the cache keeps no idle session in memory.
    pub(super) fn prune(&self) {
        self.entries.retain(|_, (_, since)| since.elapsed() < self.ttl);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
