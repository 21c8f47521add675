//! A cache of an issuer's key set.
//!
//! Concurrent requests share one fetch. An unknown key may be new, so it causes a fetch.
//! Anybody can invent key ids, so fetches have a minimum interval, and the id of a key that
//! a fetched set lacks causes no other fetch for a while. A key that cannot be looked for
//! now is not denied: after a rotation it may be in the next set. If a fetch fails, the last
//! good set stays in use.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use jsonwebtoken::Algorithm;
use parking_lot::{Mutex, MutexGuard};
use quick_cache::sync::Cache;

use super::{
    AuthError, Denied,
    keys::{Key, KeySet, Lookup},
    verified::TokenHash,
};
use crate::clock::{Clock, Timestamp};

/// The minimum interval between fetches for unknown keys.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a key that a fetched set lacks causes no other fetch.
const UNKNOWN_KEY_TTL: Duration = Duration::from_secs(30);
/// How many such keys are cached.
const UNKNOWN_KEYS: usize = 1_000;
/// The age at which a set is refreshed in the background.
const MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// The delay before a failed refresh is retried.
const RETRY: Duration = Duration::from_secs(60);
/// The delay between fetches while there is no set at all.
const BACKOFF: Duration = Duration::from_secs(5);

/// Fetches an issuer's key set.
pub(super) type Source = Arc<dyn Fn() -> BoxFuture<'static, Result<KeySet, String>> + Send + Sync>;

type Fetch = Shared<BoxFuture<'static, ()>>;

/// The cache, shared by all requests.
pub(super) struct Jwks {
    source: Source,
    clock: Arc<dyn Clock>,
    // A plain mutex: never held across an await.
    state: Mutex<State>,
    /// The hashes of key ids that a fetched set lacked, with the time of the lookup.
    unknown: Cache<TokenHash, Timestamp>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// The start of the last fetch.
    last_fetch: Option<Timestamp>,
    /// The error of the last fetch.
    failure: Option<String>,
    /// The start of the last fetch for an unknown key.
    last_fetch_for_key: Option<Timestamp>,
    fetch: Option<Fetch>,
}

impl State {
    /// The fetch in progress.
    fn fetch(&self) -> Option<Fetch> {
        self.fetch.clone().filter(|fetch| fetch.peek().is_none())
    }
}

impl Jwks {
    pub(super) fn new(source: Source, clock: Arc<dyn Clock>) -> Arc<Self> {
        let unknown = Cache::new(UNKNOWN_KEYS);
        Arc::new(Self { source, clock, state: Mutex::default(), unknown })
    }

    /// Verifies a token by the keys that fit its header.
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] if the key may be in a
    /// newer set that cannot be fetched now.
    pub(super) async fn verify(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: &str,
        verifies: impl Fn(&Key, Algorithm) -> bool,
    ) -> Result<(), AuthError> {
        let result = |keys: &KeySet| match keys.find(id, algorithm) {
            Lookup::Found(keys, by) if keys.iter().any(|key| verifies(key, by)) => Some(Ok(())),
            // The only key may have been replaced.
            Lookup::Found(..) if id.is_none() => None,
            Lookup::Found(..) => Some(Err(Denied::Signature.into())),
            Lookup::Denied(denied) => Some(Err(denied.into())),
            Lookup::Unknown => None,
        };
        let (keys, is_fresh) = self.keys().await?;
        if let Some(result) = result(&keys) {
            return result;
        }
        let unknown = TokenHash::new(id.unwrap_or_default());
        let is_known_to_be_unknown = self
            .unknown
            .get(&unknown)
            .is_some_and(|looked_up| self.clock.now().since(looked_up) < UNKNOWN_KEY_TTL);
        // A set that was fetched for this request needs no second fetch.
        if !is_fresh && !is_known_to_be_unknown {
            self.fetch_for_unknown_key()?.await;
            if let Some(result) = self.lock().keys.clone().and_then(|keys| result(&keys)) {
                return result;
            }
        }
        if let Some(reason) = self.lock().failure.clone() {
            return Err(unavailable(reason, UNKNOWN_KEY_INTERVAL));
        }
        if !is_known_to_be_unknown {
            self.unknown.insert(unknown, self.clock.now());
        }
        Err(if id.is_none() { Denied::Signature } else { Denied::Key }.into())
    }

    /// The current set, and whether it was fetched for this call.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if no fetch has succeeded yet.
    pub(super) async fn keys(self: &Arc<Self>) -> Result<(Arc<KeySet>, bool), AuthError> {
        let fetch = {
            let mut state = self.lock();
            let age = state.last_fetch.map(|start| self.clock.now().since(start));
            if let Some(keys) = state.keys.clone() {
                let max_age = if state.failure.is_some() { RETRY } else { MAX_AGE };
                if age.is_none_or(|age| age >= max_age) {
                    // Runs in the background.
                    drop(self.start_fetch(&mut state));
                }
                return Ok((keys, false));
            }
            match (state.fetch(), &state.failure, age) {
                (Some(fetch), ..) => fetch,
                (None, Some(reason), Some(age)) if age < BACKOFF => {
                    return Err(unavailable(reason.clone(), BACKOFF));
                }
                _ => self.start_fetch(&mut state),
            }
        };
        fetch.await;
        let state = self.lock();
        match &state.keys {
            Some(keys) => Ok((Arc::clone(keys), true)),
            None => Err(unavailable(state.failure.clone().unwrap_or_default(), BACKOFF)),
        }
    }

    /// A fetch for an unknown key: the one in progress, or a new one.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if the last one was too recent.
    fn fetch_for_unknown_key(self: &Arc<Self>) -> Result<Fetch, AuthError> {
        let mut state = self.lock();
        if let Some(fetch) = state.fetch() {
            return Ok(fetch);
        }
        let now = self.clock.now();
        let elapsed = state.last_fetch_for_key.map(|start| now.since(start));
        let wait = elapsed.and_then(|elapsed| UNKNOWN_KEY_INTERVAL.checked_sub(elapsed));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            let reason = "its key is unknown, and the key set was fetched just before";
            return Err(unavailable(reason.into(), wait));
        }
        state.last_fetch_for_key = Some(now);
        Ok(self.start_fetch(&mut state))
    }

    /// Starts a fetch unless one is in progress. It completes even if nothing
    /// awaits it.
    fn start_fetch(self: &Arc<Self>, state: &mut State) -> Fetch {
        if let Some(fetch) = state.fetch() {
            return fetch;
        }
        state.last_fetch = Some(self.clock.now());
        let this = Arc::clone(self);
        let task = tokio::spawn(async move {
            let fetched = (this.source)().await;
            let mut state = this.lock();
            match fetched {
                Ok(keys) => {
                    state.keys = Some(Arc::new(keys));
                    state.failure = None;
                }
                Err(reason) => {
                    tracing::warn!(reason, "an issuer's keys cannot be fetched");
                    state.failure = Some(reason);
                }
            }
            state.fetch = None;
        });
        let fetch = task.map(drop).boxed().shared();
        state.fetch = Some(fetch.clone());
        fetch
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl std::fmt::Debug for Jwks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jwks").field("keys", &self.lock().keys).finish_non_exhaustive()
    }
}

fn unavailable(reason: String, retry_after: Duration) -> AuthError {
    AuthError::Unavailable { reason, retry_after }
}

#[cfg(test)]
#[path = "jwks_tests.rs"]
mod tests;
