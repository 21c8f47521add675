//! Logins whose browser is at the authorization server. A cookie has the key that opens one, so
//! only the browser that began a login can finish it.

use std::{sync::Arc, time::Duration};

use larder_oauth::client::{LoginState, Verifier};
use larder_runtime::random::Random;
use larder_store::vault::{Sealer, Slots, Vault, VaultError};
use serde::{Deserialize, Serialize};

/// How long a person has time at the authorization server.
pub(super) const TTL: Duration = Duration::from_secs(10 * 60);
/// The most logins at once. They have slots of their own number, so callers that nobody knows
/// yet cannot make the store grow beyond it, with any number of instances.
const MAX: u16 = 4096;
/// How many slots are tried for a login.
const TRIES: usize = 8;

/// The logins of all browsers, shared by the instances on one store.
#[derive(Debug)]
pub(super) struct PendingLogins {
    slots: Arc<dyn Slots>,
    random: Random,
}

/// A login that was begun, on the server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingLogin {
    pub(super) state: LoginState,
    pub(super) nonce: String,
    pub(super) verifier: Verifier,
    /// The key of the session that the new one replaces. The browser does not send that cookie
    /// when another site's page sends it here.
    pub(super) before: Option<String>,
}

/// A pending login in its browser: the slot, and the key that opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingKey {
    slot: u16,
    key: String,
}

impl PendingKey {
    /// The bytes of a key in hexadecimal.
    const LENGTH: usize = 64;

    /// None if the text cannot be a key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (slot, key) = text.split_once('.')?;
        let slot = slot.parse().ok().filter(|slot| *slot < MAX)?;
        let is_key = key.len() == Self::LENGTH && key.bytes().all(|b| b.is_ascii_hexdigit());
        is_key.then(|| Self { slot, key: key.to_owned() })
    }

    pub(super) fn text(&self) -> String {
        format!("{}.{}", self.slot, self.key)
    }
}

impl PendingLogins {
    pub(super) fn new(slots: Arc<dyn Slots>, random: Random) -> Self {
        Self { slots, random }
    }

    /// Stores a login. None if there are too many.
    ///
    /// # Errors
    /// The store does not respond.
    pub(super) async fn create(
        &self,
        login: &PendingLogin,
    ) -> Result<Option<PendingKey>, VaultError> {
        let key = self.random.secret();

        for _ in 0..TRIES {
            let id = self.random.id();
            let number = id.get(id.len().saturating_sub(3)..).unwrap_or_default();
            let slot = u16::from_str_radix(number, 16).unwrap_or_default() % MAX;

            let current = self.slots.read(&name(slot)).await?;
            if !current.content.is_empty() {
                continue;
            }

            let vault = self.vault(&key);
            if vault.replace_for(&name(slot), current.version, Some(login), Some(TTL)).await? {
                return Ok(Some(PendingKey { slot, key }));
            }
        }
        Ok(None)
    }

    /// Removes the login of a key and returns it, if it has this state.
    ///
    /// # Errors
    /// The store does not respond.
    pub(super) async fn take(
        &self,
        key: &PendingKey,
        state: &str,
    ) -> Result<Option<PendingLogin>, VaultError> {
        let vault = self.vault(&key.key);
        let name = name(key.slot);
        let (login, version) = vault.read::<PendingLogin>(&name).await?;

        // With another state, the login stays: any page can send a browser here.
        let Some(login) = login.filter(|login| login.state.is(Some(state))) else {
            return Ok(None);
        };

        let second = Some(Duration::from_secs(1));
        let is_first = vault.replace_for::<PendingLogin>(&name, version, None, second).await?;
        Ok(is_first.then_some(login))
    }

    fn vault(&self, key: &str) -> Vault {
        Vault::new(Arc::clone(&self.slots), Sealer::new(key.as_bytes()))
    }
}

fn name(slot: u16) -> String {
    format!("console-login-{slot}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_runtime::clock::ManualClock;
    use larder_store::vault::MemorySlots;

    fn login(state: &str) -> PendingLogin {
        let login = serde_json::json!({ "state": state, "nonce": "n", "verifier": "v" });
        serde_json::from_value(login).unwrap()
    }

    fn pending() -> (PendingLogins, ManualClock) {
        let clock = ManualClock::new();
        let slots = Arc::new(MemorySlots::new(Arc::new(clock.clone()), 100_000));
        (PendingLogins::new(slots, Random::counting()), clock)
    }

    #[tokio::test]
    async fn a_login_is_taken_once_by_its_key_and_state_and_expires() {
        let (pending, clock) = pending();
        let [one, other] = ["one", "other"].map(login);
        let key = pending.create(&one).await.unwrap().unwrap();
        let key_of_other = pending.create(&other).await.unwrap().unwrap();

        assert!(pending.take(&key, "other").await.unwrap().is_none());
        let stranger = PendingKey { slot: key.slot, key: key_of_other.key.clone() };
        assert!(pending.take(&stranger, "one").await.unwrap().is_none());

        let read = PendingKey::parse(&key.text()).unwrap();
        assert_eq!(pending.take(&read, "one").await.unwrap().unwrap().verifier.reveal(), "v");
        assert!(pending.take(&key, "one").await.unwrap().is_none());

        clock.advance(TTL);
        assert!(pending.take(&key_of_other, "other").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn their_number_is_bounded_and_nobody_loses_one_to_others() {
        let (pending, clock) = pending();
        let first = pending.create(&login("first")).await.unwrap().unwrap();

        let mut stored = 1;
        while pending.create(&login("more")).await.unwrap().is_some() {
            stored += 1;
            assert!(stored <= usize::from(MAX));
        }

        assert!(stored > usize::from(MAX) / 4, "{stored}");
        assert!(pending.take(&first, "first").await.unwrap().is_some());

        clock.advance(TTL);
        assert!(pending.create(&login("later")).await.unwrap().is_some());
    }

    #[test]
    fn what_is_no_key_is_not_looked_up() {
        let key = "a1".repeat(32);
        for bad in ["", "1", &key, &format!("{MAX}.{key}"), &format!("-1.{key}"), "1.zz"] {
            assert!(PendingKey::parse(bad).is_none(), "{bad}");
        }
        assert!(PendingKey::parse(&format!("4095.{key}")).is_some());
    }
}
