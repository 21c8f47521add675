//! Slots in memory: they end with the process.

use std::{collections::HashMap, fmt};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{Slot, Slots, VaultError};

/// The most slots. A principal has one for each upstream with a login.
const MAX_SLOTS: usize = 10_000;

/// Slots in memory.
#[derive(Default)]
pub struct MemorySlots(Mutex<HashMap<String, Slot>>);

#[async_trait]
impl Slots for MemorySlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        Ok(self.0.lock().get(name).cloned().unwrap_or_default())
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
    ) -> Result<bool, VaultError> {
        let mut slots = self.0.lock();
        if !slots.contains_key(name) && slots.len() >= MAX_SLOTS {
            // Versions of empty slots are of no use after a while.
            slots.retain(|_, slot| !slot.content.is_empty());
            if slots.len() >= MAX_SLOTS {
                let problem = "too many logins for store.url = \"memory:\"; use files or Redis";
                return Err(VaultError::Full(problem.to_owned()));
            }
        }
        let slot = slots.entry(name.to_owned()).or_default();
        let is_unchanged = slot.version == version;
        if is_unchanged {
            *slot = Slot { version: version + 1, content };
        }
        Ok(is_unchanged)
    }
}

/// Shows no content.
impl fmt::Debug for MemorySlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemorySlots")
    }
}
