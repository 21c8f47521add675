//! [`Vault`]: small secrets at rest, such as tokens for other servers. A secret is sealed before it
//! reaches its slot, and opens only there. Slots have versions, so no instance overwrites the
//! changes of another one.

mod memory;
mod seal;

use std::sync::Arc;
use std::{fmt, time::Duration};

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};

pub use self::memory::MemorySlots;
pub use self::seal::Sealer;

/// The maximum size of one sealed value in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A snapshot of a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slot {
    /// The number of changes so far.
    pub version: u64,
    /// The sealed value; empty if there is none.
    pub content: Vec<u8>,
}

/// Storage of sealed values by name.
#[async_trait]
pub trait Slots: fmt::Debug + Send + Sync + 'static {
    /// Reads the slot `name`. A slot that was never written, or has expired, is empty. Some time
    /// after its expiry, its version may begin at 0 again.
    ///
    /// # Errors
    /// [`VaultError::Unavailable`] if the storage cannot be reached.
    async fn read(&self, name: &str) -> Result<Slot, VaultError>;

    /// Replaces the content of a slot that still has `version`. Returns whether it did. The slot
    /// expires after `ttl`; without `ttl`, the storage may remove a slot that nobody writes for
    /// months.
    ///
    /// # Errors
    /// [`VaultError::Unavailable`] if the storage cannot be reached, and [`VaultError::Full`].
    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError>;
}

/// The reason why a secret cannot be read or written. Its text has no secrets.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VaultError {
    /// The storage of the slots cannot be reached.
    #[error("the store of logins is not available: {0}")]
    Unavailable(String),
    /// There are too many slots, or the value is too large.
    #[error("{0}")]
    Full(String),
}

/// Sealed values by name. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vault {
    slots: Arc<dyn Slots>,
    sealer: Sealer,
}

impl Vault {
    /// A vault over `slots`.
    pub fn new(slots: Arc<dyn Slots>, sealer: Sealer) -> Self {
        Self { slots, sealer }
    }

    /// The sealer of the values, which also seals values that leave the server.
    pub fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// The value of the slot `name`, and the version for [`Vault::replace`]. A value that another
    /// key has sealed counts as absent.
    ///
    /// # Errors
    /// The slots are not available.
    pub async fn read<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<(Option<T>, u64), VaultError> {
        let Slot { version, content } = self.slots.read(name).await?;
        let value = self.sealer.open(name, &content);
        if value.is_none() && !content.is_empty() {
            tracing::warn!("a stored login was sealed with another key and is ignored");
        }

        Ok((value, version))
    }

    /// Does what [`Vault::read`] does, for a slot that holders of other keys use as well.
    ///
    /// # Errors
    /// The slots are not available.
    pub async fn read_own<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<(Option<T>, u64), VaultError> {
        let Slot { version, content } = self.slots.read(name).await?;
        Ok((self.sealer.open(name, &content), version))
    }

    /// Replaces or removes a value, if its slot still has this version. Returns whether it did.
    ///
    /// # Errors
    /// The slots are not available, or the value is too large.
    pub async fn replace<T: Serialize>(
        &self,
        name: &str,
        version: u64,
        value: Option<&T>,
    ) -> Result<bool, VaultError> {
        self.replace_for(name, version, value, None).await
    }

    /// Replaces or removes a value as [`Vault::replace`]. The value expires after `ttl`.
    ///
    /// # Errors
    /// As [`Vault::replace`].
    pub async fn replace_for<T: Serialize>(
        &self,
        name: &str,
        version: u64,
        value: Option<&T>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let content = value.map(|value| self.sealer.seal(name, value)).unwrap_or_default();
        if content.len() > MAX_BYTES {
            let problem = format!("the tokens are larger than {} KiB", MAX_BYTES >> 10);
            return Err(VaultError::Full(problem));
        }

        self.slots.replace(name, version, content, ttl).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_runtime::clock::ManualClock;

    fn slots() -> Arc<MemorySlots> {
        Arc::new(MemorySlots::new(Arc::new(ManualClock::new()), 100))
    }

    fn vault(slots: &Arc<MemorySlots>, key: &[u8]) -> Vault {
        Vault::new(Arc::clone(slots) as Arc<dyn Slots>, Sealer::new(key))
    }

    #[tokio::test]
    async fn values_are_sealed_and_open_only_in_their_slot() {
        let slots = slots();
        let vault_of_key = vault(&slots, b"key");
        let secret = "the secret".to_owned();
        assert!(vault_of_key.replace("a", 0, Some(&secret)).await.unwrap());
        assert_eq!(vault_of_key.read("a").await.unwrap(), (Some(secret.clone()), 1));

        let sealed = slots.read("a").await.unwrap().content;
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));

        // The sealed value is moved to another slot, changed, and opened with another key.
        slots.replace("b", 0, sealed.clone(), None).await.unwrap();
        assert_eq!(vault_of_key.read::<String>("b").await.unwrap(), (None, 1));

        let mut changed = sealed;
        changed[20] ^= 1;
        slots.replace("c", 0, changed, None).await.unwrap();
        assert_eq!(vault_of_key.read::<String>("c").await.unwrap(), (None, 1));
        assert_eq!(vault(&slots, b"other").read::<String>("a").await.unwrap(), (None, 1));
    }

    #[tokio::test]
    async fn only_the_first_of_two_changes_is_made() {
        let vault = vault(&slots(), b"key");
        assert!(vault.replace("a", 0, Some(&1)).await.unwrap());
        assert!(!vault.replace("a", 0, Some(&2)).await.unwrap());
        assert_eq!(vault.read("a").await.unwrap(), (Some(1), 1));

        assert!(vault.replace::<u8>("a", 1, None).await.unwrap());
        assert_eq!(vault.read::<u8>("a").await.unwrap(), (None, 2));

        let large = "x".repeat(MAX_BYTES);
        assert!(matches!(vault.replace("b", 0, Some(&large)).await, Err(VaultError::Full(_))));
    }
}
