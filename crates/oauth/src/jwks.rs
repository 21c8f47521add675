//! A cache of an issuer's key set.
//!
//! An unknown key may be new, so it causes a fetch. Anybody can invent key ids, so fetches
//! have a minimum interval, and the id of a key that a fetched set lacks causes no other
//! fetch for a while. A key that cannot be looked for now is not denied: after a rotation
//! it may be in the next set.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::Algorithm;
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use super::{
    AuthError, Denied,
    keys::{Key, KeySet, Lookup},
    refreshing::{self, Fetch, Refreshing, unavailable},
    verified::TokenHash,
};

/// The minimum interval between fetches for unknown keys.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a key that a fetched set lacks causes no other fetch.
const UNKNOWN_KEY_TTL: Duration = Duration::from_secs(30);
/// How many such keys are cached.
const UNKNOWN_KEYS: usize = 1_000;

/// Fetches an issuer's key set.
pub(super) type Source = refreshing::Source<KeySet>;

/// The cache, shared by all requests.
#[derive(Debug)]
pub(super) struct Jwks {
    keys: Arc<Refreshing<KeySet>>,
    /// The start of the last fetch for an unknown key.
    last_fetch_for_key: Mutex<Option<Timestamp>>,
    /// The hashes of key ids that a fetched set lacked, with the time of the lookup.
    unknown: Cache<TokenHash, Timestamp>,
}

impl Jwks {
    pub(super) fn new(source: Source, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            keys: Refreshing::new(source, clock),
            last_fetch_for_key: Mutex::default(),
            unknown: Cache::new(UNKNOWN_KEYS),
        })
    }

    /// Verifies a token by the keys that fit its header.
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] if the key may be in a
    /// newer set that cannot be fetched now.
    pub(super) async fn verify(
        &self,
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
            .is_some_and(|looked_up| self.now().since(looked_up) < UNKNOWN_KEY_TTL);

        // A set that was fetched for this request needs no second fetch.
        if !is_fresh && !is_known_to_be_unknown {
            self.fetch_for_unknown_key()?.await;
            if let Some(result) = self.keys.current().and_then(|keys| result(&keys)) {
                return result;
            }
        }

        if let Some(reason) = self.keys.failure() {
            return Err(unavailable(reason, UNKNOWN_KEY_INTERVAL));
        }
        if !is_known_to_be_unknown {
            self.unknown.insert(unknown, self.now());
        }

        Err(if id.is_none() { Denied::Signature } else { Denied::Key }.into())
    }

    /// The current set, and whether it was fetched for this call.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if no fetch has succeeded yet.
    pub(super) async fn keys(&self) -> Result<(Arc<KeySet>, bool), AuthError> {
        self.keys.get().await
    }

    /// A fetch for an unknown key: the one in progress, or a new one.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if the last one was too recent.
    fn fetch_for_unknown_key(&self) -> Result<Fetch, AuthError> {
        let mut last = self.last_fetch_for_key.lock();
        if let Some(fetch) = self.keys.in_progress() {
            return Ok(fetch);
        }

        let now = self.now();
        let elapsed = last.map(|start| now.since(start));
        let wait = elapsed.and_then(|elapsed| UNKNOWN_KEY_INTERVAL.checked_sub(elapsed));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            let reason = "its key is unknown, and the key set was fetched just before";
            return Err(unavailable(reason.into(), wait));
        }

        *last = Some(now);
        Ok(self.keys.fetch())
    }

    fn now(&self) -> Timestamp {
        self.keys.clock.now()
    }
}

#[cfg(test)]
#[path = "jwks_tests.rs"]
mod tests;
