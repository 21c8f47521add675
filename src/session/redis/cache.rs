//! A short-lived cache of sessions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{auth::Principal, session::Session};

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10_000;

/// Sessions by id. Other instances send a notice when a session ends or changes;
/// the time to live limits how long an entry is used if the notice is lost.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    entries: Mutex<HashMap<Arc<str>, (Arc<Session>, Instant)>>,
}

impl Cache {
    pub(super) fn new(ttl: Duration) -> Self {
        Self { ttl, entries: Mutex::default() }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let entries = self.entries.lock();
        let (session, since) = entries.get(id)?;
        let is_valid = since.elapsed() < self.ttl && session.principal == *principal;
        is_valid.then(|| Arc::clone(session))
    }

    pub(super) fn insert(&self, session: &Arc<Session>) {
        let mut entries = self.entries.lock();
        if entries.len() < MAX_ENTRIES {
            entries.insert(Arc::clone(&session.id), (Arc::clone(session), Instant::now()));
        }
    }

    pub(super) fn remove(&self, id: &str) {
        self.entries.lock().remove(id);
    }

    pub(super) fn clear(&self) {
        *self.entries.lock() = HashMap::new();
    }

    /// Removes expired entries.
    pub(super) fn prune(&self) {
        let mut entries = self.entries.lock();
        entries.retain(|_, (_, since)| since.elapsed() < self.ttl);
        entries.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}
