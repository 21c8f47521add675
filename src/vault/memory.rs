//! Slots in memory: they end with the process.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{Slot, Slots, VaultError};
use crate::clock::{Clock, Timestamp};

/// Slots in memory, of a limited number.
pub struct MemorySlots {
    kept: Mutex<Kept>,
    clock: Arc<dyn Clock>,
    max: usize,
}

#[derive(Default)]
struct Kept {
    slots: HashMap<Arc<str>, KeptSlot>,
    /// The slots that expire, the next one first.
    expiries: BTreeSet<(Timestamp, Arc<str>)>,
}

struct KeptSlot {
    slot: Slot,
    expires: Option<Timestamp>,
}

impl MemorySlots {
    /// At most that many slots.
    pub fn new(clock: Arc<dyn Clock>, max: usize) -> Self {
        Self { kept: Mutex::default(), clock, max }
    }
}

impl Kept {
    /// Removes the slots that have expired. Each is looked at once.
    fn remove_expired(&mut self, now: Timestamp) {
        while let Some((expires, _)) = self.expiries.first()
            && *expires <= now
            && let Some((_, name)) = self.expiries.pop_first()
        {
            self.slots.remove(&name);
        }
    }

    fn set(&mut self, name: &str, slot: Slot, expires: Option<Timestamp>) {
        let name: Arc<str> = name.into();
        let kept = KeptSlot { slot, expires };
        let before = self.slots.insert(Arc::clone(&name), kept);
        if let Some(expires) = before.and_then(|before| before.expires) {
            self.expiries.remove(&(expires, Arc::clone(&name)));
        }
        if let Some(expires) = expires {
            self.expiries.insert((expires, name));
        }
    }
}

#[async_trait]
impl Slots for MemorySlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let mut kept = self.kept.lock();
        kept.remove_expired(self.clock.now());
        Ok(kept.slots.get(name).map(|kept| kept.slot.clone()).unwrap_or_default())
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let mut kept = self.kept.lock();
        let now = self.clock.now();
        kept.remove_expired(now);
        let current = kept.slots.get(name).map(|kept| kept.slot.version);
        if current.unwrap_or_default() != version {
            return Ok(false);
        }
        if current.is_none() && kept.slots.len() >= self.max {
            // Versions of empty slots are of no use after a while.
            kept.slots.retain(|_, kept| !kept.slot.content.is_empty() || kept.expires.is_some());
            if kept.slots.len() >= self.max {
                let problem = "too many logins for store.url = \"memory:\"; use files or Redis";
                return Err(VaultError::Full(problem.to_owned()));
            }
        }
        let expires = ttl.map(|ttl| now.saturating_add(ttl));
        kept.set(name, Slot { version: version + 1, content }, expires);
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
    use crate::{clock::ManualClock, testing::vault::Harness, vault_contract};

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
        let (ttl, content) = (Some(Duration::from_secs(60)), || b"x".to_vec());
        for n in 0..10 {
            assert!(slots.replace(&n.to_string(), 0, content(), ttl).await.unwrap());
        }
        assert!(matches!(
            slots.replace("more", 0, content(), None).await,
            Err(VaultError::Full(_))
        ));
        // Those that exist can change.
        assert!(slots.replace("1", 1, content(), None).await.unwrap());
        clock.advance(Duration::from_secs(60));
        assert!(slots.replace("more", 0, content(), None).await.unwrap());
        let kept = slots.kept.lock();
        assert_eq!((kept.slots.len(), kept.expiries.len()), (2, 0));
    }
}
