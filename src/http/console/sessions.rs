//! Sessions of browsers. The server stores the token of each, sealed with the key that only the
//! browser's cookie has: a copy of the store opens no session, and neither does a cookie after the
//! session has ended on the server.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    clock::{Clock, Timestamp},
    random::Random,
    vault::{Sealer, Slots, Vault, VaultError},
};

/// Limits of sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionOptions {
    /// How long a session lasts at most.
    pub(crate) lifetime: Duration,
}

/// The sessions of all browsers, shared by the instances on one store.
#[derive(Debug)]
pub(super) struct Sessions {
    options: SessionOptions,
    slots: Arc<dyn Slots>,
    clock: Arc<dyn Clock>,
    random: Random,
}

/// What the server knows of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Session {
    /// The bearer token of its requests.
    pub(super) token: String,
    pub(super) expires: Timestamp,
}

/// The secret of a session, which only its browser has.
#[derive(Clone)]
pub(super) struct Key(String);

impl Key {
    /// The bytes of a key in hexadecimal.
    const LENGTH: usize = 64;

    /// None if the text cannot be a key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_key = text.len() == Self::LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_key.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the slot, which does not reveal the key.
    fn slot(&self) -> String {
        let hash = Sha256::digest(format!("larder: console session {}", self.0));
        format!("console-{}", BASE64_URL_SAFE_NO_PAD.encode(hash))
    }
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

    /// Begins a session with a token that was verified. It ends with the token at the latest.
    pub(super) async fn begin(
        &self,
        token: &str,
        token_expires: Option<Timestamp>,
    ) -> Result<(Key, Session), VaultError> {
        let key = Key(self.random.secret());
        let now = self.clock.now();
        let latest = now.saturating_add(self.options.lifetime);
        let expires = token_expires.map_or(latest, |expires| expires.min(latest));
        let session = Session { token: token.to_owned(), expires };
        let ttl = Some(expires.since(now));
        self.vault(&key).replace_for(&key.slot(), 0, Some(&session), ttl).await?;
        Ok((key, session))
    }

    /// The session of a key, unless it has ended.
    pub(super) async fn find(&self, key: &Key) -> Result<Option<Session>, VaultError> {
        let (session, _) = self.vault(key).read::<Session>(&key.slot()).await?;
        Ok(session.filter(|session| session.expires > self.clock.now()))
    }

    /// Ends a session for all copies of its key.
    pub(super) async fn end(&self, key: &Key) -> Result<(), VaultError> {
        let (vault, slot) = (self.vault(key), key.slot());
        loop {
            let (session, version) = vault.read::<Session>(&slot).await?;
            // A session is written once, so that only another logout can be in between.
            if session.is_none()
                || vault
                    .replace_for::<Session>(&slot, version, None, Some(Duration::from_secs(1)))
                    .await?
            {
                return Ok(());
            }
        }
    }

    /// Resolves when a session has ended, within `LOOK`.
    pub(super) async fn ended(&self, key: Key, session: Session) {
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

    pub(super) fn lifetime_of(&self, session: &Session) -> Duration {
        session.expires.since(self.clock.now())
    }

    fn vault(&self, key: &Key) -> Vault {
        Vault::new(Arc::clone(&self.slots), Sealer::new(key.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{clock::ManualClock, vault::MemorySlots};

    fn sessions() -> (Sessions, Arc<MemorySlots>, ManualClock) {
        let clock = ManualClock::new();
        let slots = Arc::new(MemorySlots::new(Arc::new(clock.clone()), 10));
        let options = SessionOptions { lifetime: Duration::from_secs(60) };
        let shared = Arc::clone(&slots) as Arc<dyn Slots>;
        let time = Arc::new(clock.clone());
        (Sessions::new(options, shared, time, Random::system()), slots, clock)
    }

    #[tokio::test]
    async fn a_session_lasts_until_its_end_its_expiry_or_that_of_its_token() {
        let (sessions, _, clock) = sessions();
        let (first, _) = sessions.begin("a", None).await.unwrap();
        let soon = clock.now().saturating_add(Duration::from_secs(10));
        let (second, _) = sessions.begin("b", Some(soon)).await.unwrap();
        let (third, _) = sessions.begin("c", None).await.unwrap();
        assert_eq!(sessions.find(&first).await.unwrap().unwrap().token, "a");
        sessions.end(&third).await.unwrap();
        sessions.end(&third).await.unwrap();
        assert!(sessions.find(&third).await.unwrap().is_none());
        clock.advance(Duration::from_secs(11));
        assert!(sessions.find(&second).await.unwrap().is_none());
        assert!(sessions.find(&first).await.unwrap().is_some());
        clock.advance(Duration::from_secs(50));
        assert!(sessions.find(&first).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn the_store_alone_does_not_open_a_session() {
        let (sessions, slots, _) = sessions();
        let (key, _) = sessions.begin("the token", None).await.unwrap();
        assert!(!key.slot().contains(key.as_str()));
        let stored = slots.read(&key.slot()).await.unwrap().content;
        assert!(!stored.windows(9).any(|bytes| bytes == b"the token"));
        let other = Key("0".repeat(Key::LENGTH));
        slots.replace(&other.slot(), 0, stored, None).await.unwrap();
        assert!(sessions.find(&other).await.unwrap().is_none());
    }

    #[test]
    fn what_is_no_key_is_not_looked_up() {
        for bad in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert!(Key::parse(bad).is_none(), "{bad}");
        }
        assert!(Key::parse(&"a1".repeat(32)).is_some());
    }
}
