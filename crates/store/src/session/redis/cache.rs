//! A short-lived cache of sessions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use larder_identity::Principal;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::session::Session;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10_000;

/// Sessions by id, with the time of the lookup. Other instances send a notice when a session ends or
/// changes; the time to live limits how long an entry is used if the notice is lost.
#[derive(Debug)]
pub(super) struct SessionCache {
    ttl: Duration,
    entries: quick_cache::sync::Cache<Arc<str>, (Arc<Session>, Instant)>,
    /// The sessions that are being looked up.
    lookups: Mutex<HashMap<Arc<str>, InFlight>>,
}

/// The running lookups of a session.
#[derive(Debug, Default)]
struct InFlight {
    lookups: usize,
    /// How often the session was invalidated since the first of these lookups.
    invalidations: u64,
}

/// A lookup of a session that is not cached. Its result is cached unless the session was invalidated
/// in the meantime: the reply may be older than the invalidation.
pub(super) struct SessionLookup<'a> {
    cache: &'a SessionCache,
    id: Arc<str>,
    invalidations: u64,
}

impl SessionLookup<'_> {
    /// Caches the session, unless it was invalidated since the lookup began.
    pub(super) fn found(self, session: &Arc<Session>) {
        // Held until the entry is inserted, so that an invalidation comes before or after both.
        let lookups = self.cache.lookups.lock();
        if lookups.get(&self.id).is_some_and(|l| l.invalidations == self.invalidations) {
            let entry = (Arc::clone(session), Instant::now());
            self.cache.entries.insert(Arc::clone(&self.id), entry);
        }
    }
}

impl Drop for SessionLookup<'_> {
    fn drop(&mut self) {
        let mut lookups = self.cache.lookups.lock();
        if let Some(in_flight) = lookups.get_mut(&self.id) {
            in_flight.lookups -= 1;
            if in_flight.lookups == 0 {
                lookups.remove(&self.id);
            }
        }
    }
}

impl SessionCache {
    pub(super) fn new(ttl: Duration) -> Self {
        let entries = quick_cache::sync::Cache::new(MAX_ENTRIES);
        Self { ttl, entries, lookups: Mutex::default() }
    }

    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let (session, since) = self.entries.get(id)?;
        let is_valid = since.elapsed() < self.ttl && session.principal == *principal;
        is_valid.then_some(session)
    }

    /// Begins a lookup of a session, before it is read.
    pub(super) fn look_up(&self, id: &str) -> SessionLookup<'_> {
        let id: Arc<str> = id.into();
        let mut lookups = self.lookups.lock();

        let in_flight = lookups.entry(Arc::clone(&id)).or_default();
        in_flight.lookups += 1;
        SessionLookup { cache: self, id, invalidations: in_flight.invalidations }
    }

    /// Invalidates a session that has ended or changed.
    pub(super) fn remove(&self, id: &str) {
        let mut lookups = self.lookups.lock();
        if let Some(in_flight) = lookups.get_mut(id) {
            in_flight.invalidations += 1;
        }

        self.entries.remove(id);
    }

    /// Invalidates all sessions.
    pub(super) fn clear(&self) {
        let mut lookups = self.lookups.lock();
        for in_flight in lookups.values_mut() {
            in_flight.invalidations += 1;
        }

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

#[cfg(test)]
mod tests {
    use super::*;
    use larder_protocol::{LogLevel, ProtocolVersion};

    #[test]
    fn a_lookup_that_an_invalidation_overtakes_is_not_cached() {
        let cache = SessionCache::new(Duration::from_secs(60));
        let session = Arc::new(Session {
            id: "s".into(),
            principal: Principal::Local,
            version: ProtocolVersion::LATEST_LEGACY,
            client: Arc::default(),
            log_level: LogLevel::Info,
        });
        let is_cached = || cache.get("s", &Principal::Local).is_some();

        for invalidate in [|cache: &SessionCache| cache.remove("s"), SessionCache::clear] {
            let lookup = cache.look_up("s");
            invalidate(&cache);
            let later = cache.look_up("s");

            lookup.found(&session);
            assert!(!is_cached(), "the lookup was older than the invalidation");

            later.found(&session);
            assert!(is_cached());

            invalidate(&cache);
            assert!(!is_cached());
        }

        cache.look_up("s").found(&session);

        // An invalidation of another session changes nothing.
        let lookup = cache.look_up("s");
        cache.remove("other");
        lookup.found(&session);
        assert!(is_cached() && cache.lookups.lock().is_empty());
    }
}
