//! Sessions of browsers. The server stores the token of each, sealed with the secret that only the
//! browser's cookie has: a copy of the store opens no session, and neither does a cookie after the
//! session has ended on the server.

use std::{sync::Arc, time::Duration};

use larder_oauth::{Identity, Owner};
use larder_runtime::{
    clock::{Clock, Timestamp},
    random::Random,
};
use larder_store::{
    store::{Store, StoreError},
    vault::{Sealer, Slots, Vault, VaultError},
};
use serde::{Deserialize, Serialize};

use super::{
    places::SessionPlaces,
    session_key::{Account, SessionKey},
};

/// The bytes that a session counts towards the quota of its owner, besides its token: about what
/// its slot and its place take.
const SESSION_BYTES: u64 = 1024;

/// The ID by which the sessions of an owner count.
const COUNTED_AS: &str = "console-sessions";

/// How often a change is tried, if others change the same sessions at the same time.
const ATTEMPTS: usize = 8;

/// How long a slot is remembered whose session has ended, for whoever is about to write it.
const ENDED: Duration = Duration::from_secs(1);

/// Limits of sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// How long a session lasts at most.
    pub lifetime: Duration,
    /// The most sessions of one principal.
    pub per_principal: u16,
}

/// The sessions of all browsers, shared by the instances on one store.
#[derive(Debug)]
pub(super) struct Sessions {
    options: SessionOptions,
    slots: Arc<dyn Slots>,
    clock: Arc<dyn Clock>,
    random: Random,
}

/// A session of the console on the server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ConsoleSession {
    /// The bearer token of its requests.
    pub(super) token: String,
    pub(super) expires: Timestamp,
    owner: Owner,
    id: String,
}

/// Why a session cannot begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("other logins of the same principal change its sessions all the time")]
    Contended,
}

impl Sessions {
    pub(super) fn new(
        options: SessionOptions,
        slots: Arc<dyn Slots>,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Self {
        Self { options, slots, clock, random }
    }

    /// Begins a session of a caller with the token that was verified. It ends with the token at the
    /// latest. The oldest session of the caller ends if there are too many.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) async fn begin(
        &self,
        store: &Store,
        caller: &Identity,
        token: &str,
    ) -> Result<(SessionKey, ConsoleSession), SessionError> {
        let now = self.clock.now();
        let latest = now.saturating_add(self.options.lifetime);
        let expires = caller.expires().map_or(latest, |expires| expires.min(latest));
        let session = ConsoleSession {
            token: token.to_owned(),
            expires,
            owner: caller.owner().clone(),
            id: self.random.id(),
        };

        let key = self.take_place(store, &session, now).await?;
        self.write(&key, &session, expires.since(now)).await?;
        Ok((key, session))
    }

    /// Takes a place for a session, and counts it.
    async fn take_place(
        &self,
        store: &Store,
        session: &ConsoleSession,
        now: Timestamp,
    ) -> Result<SessionKey, SessionError> {
        let account = Account::of(&session.owner);
        let max = self.options.per_principal;
        let bytes = SESSION_BYTES + session.token.len() as u64;

        for _ in 0..ATTEMPTS {
            let mut places = SessionPlaces::read(&self.slots, &account, max, now).await?;
            let place = places.add(session.id.clone(), session.expires, bytes, max);
            self.count_or_end_others(store, session, &account, &mut places, now).await?;

            if places.write(&self.slots, &account, now).await? {
                return Ok(SessionKey::new(account, place, &self.random));
            }
        }
        Err(SessionError::Contended)
    }

    /// Counts the sessions towards the quota of their owner. If they do not fit, only the latest one
    /// stays: whoever is out of room has to be able to log in, to delete something.
    async fn count_or_end_others(
        &self,
        store: &Store,
        session: &ConsoleSession,
        account: &Account,
        places: &mut SessionPlaces,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        let owner = &session.owner;
        let ttl = places.ttl(now);
        match store.count_elsewhere(owner, COUNTED_AS, places.bytes(), ttl).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Full(_)) => {}
            Err(error) => return Err(error.into()),
        }

        for place in places.keep_latest() {
            self.empty(&account.session_slot(place)).await?;
        }

        match store.count_elsewhere(owner, COUNTED_AS, places.bytes(), ttl).await {
            Ok(()) => Ok(()),
            Err(StoreError::Full(_)) => {
                Ok(store.count_elsewhere(owner, COUNTED_AS, 0, ttl).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a session into its place, over the one that had it.
    async fn write(
        &self,
        key: &SessionKey,
        session: &ConsoleSession,
        ttl: Duration,
    ) -> Result<(), SessionError> {
        let vault = self.vault(key);
        let slot = key.slot();

        for _ in 0..ATTEMPTS {
            let version = self.slots.read(&slot).await?.version;
            if vault.replace_for(&slot, version, Some(session), Some(ttl)).await? {
                return Ok(());
            }
        }
        Err(SessionError::Contended)
    }

    /// The session of a key, unless it has ended.
    pub(super) async fn find(
        &self,
        key: &SessionKey,
    ) -> Result<Option<ConsoleSession>, VaultError> {
        // A higher limit, set before, may have given places above the current limit.
        if key.place >= self.options.per_principal {
            return Ok(None);
        }

        let (session, _) = self.vault(key).read_own::<ConsoleSession>(&key.slot()).await?;
        Ok(session.filter(|session| session.expires > self.clock.now()))
    }

    /// Ends a session for all copies of its key. Returns the session, unless it had ended before.
    pub(super) async fn end(
        &self,
        store: &Store,
        key: &SessionKey,
    ) -> Result<Option<ConsoleSession>, VaultError> {
        let vault = self.vault(key);
        let slot = key.slot();

        let session = loop {
            let (session, version) = vault.read_own::<ConsoleSession>(&slot).await?;
            let Some(session) = session else { return Ok(None) };
            if vault.replace_for::<ConsoleSession>(&slot, version, None, Some(ENDED)).await? {
                break session;
            }
        };

        // The session has ended already. If its place cannot be freed, the place stays taken until
        // the session would have expired.
        if let Err(error) = self.free_place(store, &session).await {
            tracing::warn!(%error, "the place of an ended session of the console stays taken");
        }
        Ok(Some(session))
    }

    /// Frees the place of a session that has ended, which no longer counts then.
    async fn free_place(
        &self,
        store: &Store,
        session: &ConsoleSession,
    ) -> Result<(), SessionError> {
        let account = Account::of(&session.owner);
        let max = self.options.per_principal;
        let now = self.clock.now();

        for _ in 0..ATTEMPTS {
            let mut places = SessionPlaces::read(&self.slots, &account, max, now).await?;
            if !places.remove(&session.id) {
                return Ok(());
            }

            if places.write(&self.slots, &account, now).await? {
                let bytes = places.bytes();
                let ttl = places.ttl(now);
                return Ok(store.count_elsewhere(&session.owner, COUNTED_AS, bytes, ttl).await?);
            }
        }
        Err(SessionError::Contended)
    }

    /// Ends whichever session is in a slot.
    async fn empty(&self, slot: &str) -> Result<(), VaultError> {
        for _ in 0..ATTEMPTS {
            let found = self.slots.read(slot).await?;
            if found.content.is_empty()
                || self.slots.replace(slot, found.version, Vec::new(), Some(ENDED)).await?
            {
                break;
            }
        }
        Ok(())
    }

    /// Resolves when a session has ended, within `LOOK`.
    pub(super) async fn ended(&self, key: SessionKey, session: ConsoleSession) {
        /// How often an open stream looks whether its session has ended on another instance.
        const LOOK: Duration = Duration::from_secs(5);

        loop {
            let look = self.clock.now().saturating_add(LOOK);
            self.clock.sleep_until(look.min(session.expires)).await;

            // While the store does not respond, the stream stays.
            if let Ok(None) = self.find(&key).await {
                return;
            }
        }
    }

    pub(super) fn lifetime_of(&self, session: &ConsoleSession) -> Duration {
        session.expires.since(self.clock.now())
    }

    fn vault(&self, key: &SessionKey) -> Vault {
        Vault::new(Arc::clone(&self.slots), Sealer::new(key.secret()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_oauth::{Grant, Principal};
    use larder_runtime::clock::ManualClock;
    use larder_store::{
        store::{MemoryLimits, StoreLimits},
        vault::MemorySlots,
    };

    struct Setup {
        sessions: Sessions,
        store: Store,
        slots: Arc<MemorySlots>,
        clock: ManualClock,
    }

    impl Setup {
        fn new() -> Self {
            let clock = ManualClock::new();
            let time = Arc::new(clock.clone());
            let slots = Arc::new(MemorySlots::new(time.clone(), 10));
            let options = SessionOptions { lifetime: Duration::from_secs(60), per_principal: 4 };
            let shared = Arc::clone(&slots) as Arc<dyn Slots>;

            let store =
                Store::memory(time.clone(), MemoryLimits::default(), StoreLimits::default());

            let sessions = Sessions::new(options, shared, time, Random::system());
            Self { sessions, store, slots, clock }
        }

        async fn begin(&self, token: &str, expires: Option<Timestamp>) -> SessionKey {
            let principal = Principal::Static { name: "ann".into() };
            let caller = Identity::new(principal, Grant::All, expires);
            self.sessions.begin(&self.store, &caller, token).await.unwrap().0
        }

        async fn token(&self, key: &SessionKey) -> Option<String> {
            self.sessions.find(key).await.unwrap().map(|session| session.token)
        }

        async fn counted(&self) -> u64 {
            let owner = Principal::Static { name: "ann".into() }.owner();
            self.store.usage_of(&owner).await.unwrap().bytes
        }
    }

    #[tokio::test]
    async fn a_session_lasts_until_its_end_its_expiry_or_that_of_its_token() {
        let setup = Setup::new();
        let first = setup.begin("a", None).await;
        let soon = setup.clock.now().saturating_add(Duration::from_secs(10));
        let second = setup.begin("b", Some(soon)).await;
        let third = setup.begin("c", None).await;

        assert_eq!(setup.token(&first).await.as_deref(), Some("a"));
        assert_eq!(setup.counted().await, 3 * (SESSION_BYTES + 1));

        for _ in 0..2 {
            setup.sessions.end(&setup.store, &third).await.unwrap();
        }
        assert_eq!(setup.token(&third).await, None);
        assert_eq!(setup.counted().await, 2 * (SESSION_BYTES + 1));

        setup.clock.advance(Duration::from_secs(11));
        assert_eq!(setup.token(&second).await, None);
        assert!(setup.token(&first).await.is_some());

        setup.clock.advance(Duration::from_secs(50));
        assert_eq!(setup.token(&first).await, None);
        assert_eq!(setup.counted().await, 0);
    }

    #[tokio::test]
    async fn a_key_opens_no_later_session_in_its_place() {
        let setup = Setup::new();
        let first = setup.begin("a", None).await;
        for _ in 0..3 {
            setup.begin("b", None).await;
        }
        let fifth = setup.begin("c", None).await;

        assert_eq!(first.slot(), fifth.slot());
        assert_eq!(setup.token(&first).await, None);

        setup.sessions.end(&setup.store, &first).await.unwrap();
        assert_eq!(setup.token(&fifth).await.as_deref(), Some("c"));
        assert_eq!(setup.counted().await, 4 * (SESSION_BYTES + 1));
    }

    #[tokio::test]
    async fn the_store_alone_does_not_open_a_session() {
        let setup = Setup::new();
        let key = setup.begin("the token", None).await;
        let stored = setup.slots.read(&key.slot()).await.unwrap().content;
        assert!(!stored.windows(9).any(|bytes| bytes == b"the token"));

        let other = SessionKey::new(key.account.clone(), 2, &Random::system());
        setup.slots.replace(&other.slot(), 0, stored, None).await.unwrap();
        assert_eq!(setup.token(&other).await, None);

        let guess = SessionKey::new(key.account.clone(), key.place, &Random::system());
        assert_eq!(setup.token(&guess).await, None);
        assert!(setup.token(&key).await.is_some());
    }
}
