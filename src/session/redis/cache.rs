//! Sessions that were looked up a moment ago.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::{auth::Principal, session::Session};

/// How many are remembered at most.
const MOST: usize = 10_000;

/// For a moment only: other replicas say at once when a session ends or
/// changes, and when they cannot be heard this bounds how long it is used on.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    looked_up: Mutex<LookedUp>,
}

/// By id, with when that was.
type LookedUp = HashMap<Arc<str>, (Arc<Session>, Instant)>;

impl Cache {
    pub(super) fn new(ttl: Duration) -> Self {
        Self { ttl, looked_up: Mutex::default() }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let looked_up = self.lock();
        let (session, since) = looked_up.get(id)?;
        let fits = since.elapsed() < self.ttl && session.principal == *principal;
        fits.then(|| Arc::clone(session))
    }

    pub(super) fn put(&self, session: &Arc<Session>) {
        let mut looked_up = self.lock();
        if looked_up.len() < MOST {
            looked_up.insert(Arc::clone(&session.id), (Arc::clone(session), Instant::now()));
        }
    }

    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(super) fn clear(&self) {
        *self.lock() = HashMap::new();
    }

    /// Forgets what is too old to be used.
    pub(super) fn prune(&self) {
        let mut looked_up = self.lock();
        looked_up.retain(|_, (_, since)| since.elapsed() < self.ttl);
        looked_up.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, LookedUp> {
        self.looked_up.lock()
    }
}
