//! A cache of an issuer's key set.
//!
//! One fetch at a time, however many wait for it. Keys that are not known may
//! have been added since, so the set is fetched again for them, but once a
//! minute at most: anybody can make up key ids. Where no newer set is to be
//! had, the last good one goes on.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use jsonwebtoken::Algorithm;
use parking_lot::{Mutex, MutexGuard};

use super::{
    AuthError, Denied,
    keys::{Key, KeySet, Lookup},
};
use crate::clock::{Clock, Timestamp};

/// How often a set is fetched for the sake of keys that it has not got.
const UNKNOWN_KEY_EVERY: Duration = Duration::from_secs(60);
/// How old a set may be before it is fetched anew, beside the requests.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How soon that is tried again when it failed.
const RETRY: Duration = Duration::from_secs(60);
/// How long nobody asks again after a failure while there is no set at all.
const BACKOFF: Duration = Duration::from_secs(5);

/// Gets an issuer's key set from where it is.
pub(super) type Source = Arc<dyn Fn() -> BoxFuture<'static, Result<KeySet, String>> + Send + Sync>;

type Flight = Shared<BoxFuture<'static, ()>>;

/// The cache. Shared by all requests.
pub(super) struct Jwks {
    source: Source,
    clock: Arc<dyn Clock>,
    // A plain mutex: held for a few moves and never across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// When the last fetch began.
    asked: Option<Timestamp>,
    /// Why it failed, if it did.
    failure: Option<String>,
    /// When one was last begun for a key that was not there.
    asked_for_key: Option<Timestamp>,
    flight: Option<Flight>,
}

impl State {
    /// The fetch under way.
    fn flight(&self) -> Option<Flight> {
        self.flight.clone().filter(|flight| flight.peek().is_none())
    }
}

impl Jwks {
    pub(super) fn new(source: Source, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { source, clock, state: Mutex::default() })
    }

    /// Judges by the key that a token with that header was signed with.
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] when the key may be
    /// in a set that cannot be had now.
    pub(super) async fn judge(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: &str,
        verifies: impl Fn(&Key, Algorithm) -> bool,
    ) -> Result<(), AuthError> {
        let judge = |keys: &KeySet| match keys.find(id, algorithm) {
            Lookup::Found(keys, by) if keys.iter().any(|key| verifies(key, by)) => Some(Ok(())),
            Lookup::Found(..) => Some(Err(Denied::Signature.into())),
            Lookup::Denied(denied) => Some(Err(denied.into())),
            Lookup::NotThere => None,
        };
        let (keys, fresh) = self.keys().await?;
        if let Some(judged) = judge(&keys) {
            return judged;
        }
        // A set that was fetched for this very request cannot be any newer.
        if !fresh && let Some(flight) = self.newer() {
            flight.await;
            if let Some(judged) = self.lock().keys.clone().and_then(|keys| judge(&keys)) {
                return judged;
            }
        }
        match self.lock().failure.clone() {
            Some(reason) => Err(unavailable(reason, UNKNOWN_KEY_EVERY)),
            None => Err(Denied::Key.into()),
        }
    }

    /// The set, however old; and whether it was fetched just now.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] when there never was one.
    pub(super) async fn keys(self: &Arc<Self>) -> Result<(Arc<KeySet>, bool), AuthError> {
        let flight = {
            let mut state = self.lock();
            let since = state.asked.map(|at| self.clock.now().since(at));
            if let Some(keys) = state.keys.clone() {
                let age = if state.failure.is_some() { RETRY } else { FRESH };
                if since.is_none_or(|since| since >= age) {
                    // It goes on although nobody waits for it.
                    drop(self.fetch(&mut state));
                }
                return Ok((keys, false));
            }
            match (state.flight(), &state.failure, since) {
                (Some(flight), ..) => flight,
                (None, Some(reason), Some(since)) if since < BACKOFF => {
                    return Err(unavailable(reason.clone(), BACKOFF));
                }
                _ => self.fetch(&mut state),
            }
        };
        flight.await;
        let state = self.lock();
        match &state.keys {
            Some(keys) => Ok((Arc::clone(keys), true)),
            None => Err(unavailable(state.failure.clone().unwrap_or_default(), BACKOFF)),
        }
    }

    /// A fetch for the sake of a key that is not there: the one under way, or
    /// a new one if it is time.
    fn newer(self: &Arc<Self>) -> Option<Flight> {
        let mut state = self.lock();
        if let Some(flight) = state.flight() {
            return Some(flight);
        }
        let now = self.clock.now();
        if state.asked_for_key.is_some_and(|at| now.since(at) < UNKNOWN_KEY_EVERY) {
            return None;
        }
        state.asked_for_key = Some(now);
        Some(self.fetch(&mut state))
    }

    /// Begins a fetch that goes on even if nobody waits for it any longer.
    fn fetch(self: &Arc<Self>, state: &mut State) -> Flight {
        if let Some(flight) = state.flight() {
            return flight;
        }
        state.asked = Some(self.clock.now());
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
            state.flight = None;
        });
        let flight = task.map(drop).boxed().shared();
        state.flight = Some(flight.clone());
        flight
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
