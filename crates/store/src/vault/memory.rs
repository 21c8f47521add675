//! Slots in memory, which end with the process.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::Mutex;

use super::{Slot, Slots, VaultError};
use crate::expiring::ExpiringMap;

/// A limited number of slots in memory.
pub struct MemorySlots {
    table: Mutex<SlotTable>,
    clock: Arc<dyn Clock>,
    max: usize,
}

/// The slots by name.
#[derive(Default)]
struct SlotTable {
    slots: ExpiringMap<Arc<str>, Slot>,

    /// The slots without content and expiry, which only have their version. The version is needed
    /// for a short time.
    emptied: HashSet<Arc<str>>,
}

impl MemorySlots {
    /// Empty slots, at most `max` of them.
    pub fn new(clock: Arc<dyn Clock>, max: usize) -> Self {
        Self { table: Mutex::default(), clock, max }
    }
}

impl SlotTable {
    /// Removes the slots that have expired.
    fn remove_expired(&mut self, now: Timestamp) {
        while self.slots.pop_expired(now).is_some() {}
    }

    /// Removes the slots without content. Each slot is removed once, so a full table refuses in
    /// constant time.
    fn remove_emptied(&mut self) {
        for name in self.emptied.drain() {
            self.slots.remove(&name);
        }
    }

    fn set(&mut self, name: &str, slot: Slot, expires: Option<Timestamp>) {
        let name: Arc<str> = name.into();
        if slot.content.is_empty() && expires.is_none() {
            self.emptied.insert(Arc::clone(&name));
        } else {
            self.emptied.remove(&name);
        }

        self.slots.insert(name, slot, expires);
    }
}

#[async_trait]
impl Slots for MemorySlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let mut table = self.table.lock();
        table.remove_expired(self.clock.now());

        Ok(table.slots.get(name).cloned().unwrap_or_default())
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let mut table = self.table.lock();
        let now = self.clock.now();
        table.remove_expired(now);

        let current = table.slots.get(name).map(|slot| slot.version);
        if current.unwrap_or_default() != version {
            return Ok(false);
        }
        if current.is_none() && table.slots.len() >= self.max {
            table.remove_emptied();
            if table.slots.len() >= self.max {
                let problem = "too many logins for store.url = \"memory:\"; use files or Redis";
                return Err(VaultError::Full(problem.to_owned()));
            }
        }

        let expires = ttl.map(|ttl| now.saturating_add(ttl));
        table.set(name, Slot { version: version + 1, content }, expires);
        Ok(true)
    }
}

/// Shows no content.
impl fmt::Debug for MemorySlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemorySlots")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{testing::vault::Harness, vault_contract};
    use larder_runtime::clock::ManualClock;

    struct InMemory(ManualClock, Arc<MemorySlots>);

    #[async_trait]
    impl Harness for InMemory {
        async fn instances(&self) -> [Arc<dyn Slots>; 2] {
            [(); 2].map(|()| Arc::clone(&self.1) as Arc<dyn Slots>)
        }

        async fn pass(&self, time: Duration) {
            self.0.advance(time);
        }
    }

    fn in_memory() -> InMemory {
        let clock = ManualClock::new();
        InMemory(clock.clone(), Arc::new(MemorySlots::new(Arc::new(clock), 10)))
    }

    vault_contract!(async { in_memory() });

    #[tokio::test]
    async fn slots_are_limited_and_expired_ones_make_room() {
        let InMemory(clock, slots) = in_memory();
        let ttl = Some(Duration::from_secs(60));
        let content = || b"x".to_vec();

        for n in 0..10 {
            assert!(slots.replace(&n.to_string(), 0, content(), ttl).await.unwrap());
        }
        assert!(matches!(
            slots.replace("more", 0, content(), None).await,
            Err(VaultError::Full(_))
        ));

        // A slot that exists can change.
        assert!(slots.replace("1", 1, content(), None).await.unwrap());

        clock.advance(Duration::from_secs(60));
        assert!(slots.replace("more", 0, content(), None).await.unwrap());

        let sizes = || {
            let table = slots.table.lock();
            (table.slots.len(), table.slots.next_expiry(), table.emptied.len())
        };
        assert_eq!(sizes(), (2, None, 0));

        // Emptied slots make room, too, unless they have content again.
        for n in 2..10 {
            assert!(slots.replace(&n.to_string(), 0, content(), None).await.unwrap());
        }
        assert!(slots.replace("2", 1, Vec::new(), None).await.unwrap());
        assert!(slots.replace("3", 1, Vec::new(), None).await.unwrap());
        assert!(slots.replace("3", 2, content(), None).await.unwrap());

        assert!(slots.replace("another", 0, content(), None).await.unwrap());
        assert_eq!(slots.read("3").await.unwrap().content, content());
        assert_eq!(sizes(), (10, None, 0));
    }
}
