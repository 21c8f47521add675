//! What a replica does so that what is in use does not expire.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};

use super::{Inner, LINGER, scripts::Place};
use crate::redis::{RedisError, millis};

/// How often what was looked up is forgotten: a little after it cannot be used.
const TIDY: Duration = Duration::from_secs(1);

/// How many renewals are under way at once.
const AT_ONCE: usize = 64;

/// What this replica has in use.
#[derive(Debug, Default)]
pub(super) struct Held {
    sessions: Mutex<HashMap<Arc<str>, (Place, usize)>>,
    streams: Mutex<HashMap<Arc<str>, Place>>,
}

/// Keeps a session while it lives.
#[derive(Debug)]
pub(super) struct Hold {
    held: Arc<Held>,
    session: Arc<str>,
    stream: Option<Arc<str>>,
}

impl Held {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.sessions).len() + lock(&self.streams).len()
    }

    /// Keeps the session, and the stream where one is written.
    pub(super) fn hold(self: &Arc<Self>, place: &Place, stream: Option<&Arc<str>>) -> Hold {
        let uses = &mut lock(&self.sessions);
        uses.entry(Arc::clone(&place.id)).or_insert_with(|| (place.clone(), 0)).1 += 1;
        if let Some(stream) = stream {
            lock(&self.streams).insert(Arc::clone(stream), place.clone());
        }
        let held = Arc::clone(self);
        Hold { held, session: Arc::clone(&place.id), stream: stream.cloned() }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut sessions = lock(&self.held.sessions);
        if let Some((_, uses)) = sessions.get_mut(&self.session) {
            *uses -= 1;
            if *uses == 0 {
                sessions.remove(&self.session);
            }
        }
        if let Some(stream) = &self.stream {
            lock(&self.held.streams).remove(stream);
        }
    }
}

impl Inner {
    /// Forgets what was looked up a while ago, until dropped.
    pub(super) async fn tidy(&self) {
        loop {
            tokio::time::sleep(TIDY).await;
            self.cache.prune();
        }
    }

    /// Renews what is in use, until dropped.
    pub(super) async fn renew(&self) {
        let every = self.limits.idle.min(self.limits.replay + LINGER) / 3;
        loop {
            tokio::time::sleep(every).await;
            let streams: Vec<_> = {
                let streams = lock(&self.held.streams);
                streams.iter().map(|(stream, place)| (Arc::clone(stream), place.clone())).collect()
            };
            let lease = millis(self.limits.replay + LINGER);
            stream::iter(streams)
                .for_each_concurrent(AT_ONCE, |(stream, place)| async move {
                    let renewal = place.stream(&self.scripts.lease, &stream).arg(lease);
                    self.renewed(self.redis.call(&renewal).await);
                })
                .await;
            let sessions: Vec<_> =
                lock(&self.held.sessions).values().map(|(place, _)| place.clone()).collect();
            let idle = millis(self.limits.idle);
            stream::iter(sessions)
                .for_each_concurrent(AT_ONCE, |place| async move {
                    let renewal = place.session(&self.scripts.look).arg(idle);
                    self.renewed(self.redis.call(&renewal).await);
                })
                .await;
        }
    }

    #[allow(clippy::unused_self, reason = "reads as the step that it is")]
    fn renewed(&self, renewal: Result<Vec<String>, RedisError>) {
        if let Err(error) = renewal {
            tracing::debug!(%error, "what is in use cannot be renewed");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
