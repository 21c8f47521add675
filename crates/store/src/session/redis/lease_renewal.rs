//! Leases on the sessions and streams that this instance uses, and the task that renews them before
//! they expire.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use super::{LINGER, RedisSessionStore, keys::SessionKeys};
use crate::redis::{RedisError, millis};

/// The interval at which expired entries are removed from the cache.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);

/// The number of concurrent renewals.
const CONCURRENCY: usize = 64;

/// The sessions and streams in use by this instance.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// The sessions by ID, each with the number of leases on it.
    sessions: Mutex<HashMap<Arc<str>, (SessionKeys, usize)>>,
    /// The streams that this instance writes, by name.
    streams: Mutex<HashMap<Arc<str>, SessionKeys>>,
}

/// Keeps a session, and possibly a stream of it, from expiring until this value is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    leases: Arc<Leases>,
    session: Arc<str>,
    stream: Option<Arc<str>>,
}

impl Leases {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sessions.lock().len() + self.streams.lock().len()
    }

    /// Takes a lease on the session, and on the stream if this instance writes it.
    pub(super) fn acquire(
        self: &Arc<Self>,
        keys: &SessionKeys,
        stream: Option<&Arc<str>>,
    ) -> Lease {
        let session = Arc::clone(&keys.id);

        let mut sessions = self.sessions.lock();
        sessions.entry(Arc::clone(&session)).or_insert_with(|| (keys.clone(), 0)).1 += 1;

        if let Some(stream) = stream {
            self.streams.lock().insert(Arc::clone(stream), keys.clone());
        }

        Lease { leases: Arc::clone(self), session, stream: stream.cloned() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = self.leases.sessions.lock();
        if let Some((_, uses)) = sessions.get_mut(&self.session) {
            *uses -= 1;
            if *uses == 0 {
                sessions.remove(&self.session);
            }
        }

        if let Some(stream) = &self.stream {
            self.leases.streams.lock().remove(stream);
        }
    }
}

impl RedisSessionStore {
    /// Removes expired cache entries, until dropped.
    pub(super) async fn prune_cache(&self) {
        loop {
            tokio::time::sleep(PRUNE_INTERVAL).await;
            self.cache.prune();
        }
    }

    /// Renews all leases at intervals, until dropped.
    pub(super) async fn renew_leases(&self) {
        let interval = self.limits.idle.min(self.limits.replay + LINGER) / 3;
        loop {
            tokio::time::sleep(interval).await;

            let streams: Vec<_> = {
                let streams = self.leases.streams.lock();
                streams.iter().map(|(stream, keys)| (Arc::clone(stream), keys.clone())).collect()
            };

            let lease = millis(self.limits.replay + LINGER);
            stream::iter(streams)
                .for_each_concurrent(CONCURRENCY, |(stream, keys)| async move {
                    let renewal = keys.stream(&self.scripts.renew_stream, &stream).arg(lease);
                    log_failure(self.redis.call(&renewal).await);
                })
                .await;

            let sessions: Vec<_> =
                self.leases.sessions.lock().values().map(|(keys, _)| keys.clone()).collect();
            let idle = millis(self.limits.idle);

            stream::iter(sessions)
                .for_each_concurrent(CONCURRENCY, |keys| async move {
                    let renewal = keys.session(&self.scripts.get).arg(idle);
                    log_failure(self.redis.call(&renewal).await);
                })
                .await;
        }
    }
}

fn log_failure(renewal: Result<Vec<String>, RedisError>) {
    if let Err(error) = renewal {
        tracing::debug!(%error, "cannot renew a lease");
    }
}
