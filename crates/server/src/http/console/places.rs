//! [`SessionPlaces`]: which sessions an owner has. There is a bounded number of places for them, each a
//! slot of its own, so the logins of one owner never fill the store.

use std::{sync::Arc, time::Duration};

use larder_runtime::clock::Timestamp;
use larder_store::vault::{Slot, Slots, VaultError};
use serde::{Deserialize, Serialize};

use super::session_key::Account;

/// A session in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Occupied {
    pub(super) place: u16,
    /// The ID of the session, because its place is used again.
    pub(super) id: String,
    pub(super) expires: Timestamp,
    /// The bytes that the session counts towards the quota of its owner.
    pub(super) bytes: u64,
}

/// The sessions of an owner, as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionPlaces {
    /// Ordered by their beginning, the earliest first.
    occupied: Vec<Occupied>,
    version: u64,
}

impl SessionPlaces {
    /// Reads the sessions of an owner that have not expired, in `max` places.
    pub(super) async fn read(
        slots: &Arc<dyn Slots>,
        account: &Account,
        max: u16,
        now: Timestamp,
    ) -> Result<Self, VaultError> {
        let Slot { version, content } = slots.read(&account.places_slot()).await?;
        // Places that cannot be parsed were written by another version, and are used again.
        let mut occupied: Vec<Occupied> = serde_json::from_slice(&content).unwrap_or_default();
        occupied.retain(|session| session.place < max && session.expires > now);
        Ok(Self { occupied, version })
    }

    /// Gives a session that begins a free place, or that of the oldest session.
    pub(super) fn add(&mut self, id: String, expires: Timestamp, bytes: u64, max: u16) -> u16 {
        let is_free = |place: &u16| self.occupied.iter().all(|session| session.place != *place);
        let place = match (0..max).find(is_free) {
            Some(free) => free,
            None => self.occupied.remove(0).place,
        };

        self.occupied.push(Occupied { place, id, expires, bytes });
        place
    }

    /// Removes all sessions but the latest one. Returns the places that are free then.
    pub(super) fn keep_latest(&mut self) -> Vec<u16> {
        let before = self.occupied.split_off(self.occupied.len().saturating_sub(1));
        let others = std::mem::replace(&mut self.occupied, before);
        others.into_iter().map(|session| session.place).collect()
    }

    /// Removes a session. Returns whether there was one.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let count = self.occupied.len();
        self.occupied.retain(|session| session.id != id);
        self.occupied.len() < count
    }

    /// The bytes that all sessions count.
    pub(super) fn bytes(&self) -> u64 {
        self.occupied.iter().map(|session| session.bytes).sum()
    }

    /// The time until the last session ends.
    pub(super) fn ttl(&self, now: Timestamp) -> Duration {
        let last = self.occupied.iter().map(|session| session.expires).max();
        last.map_or(Duration::ZERO, |last| last.since(now)).max(Duration::from_secs(1))
    }

    /// Stores the sessions, if no other request has changed them since. Returns whether it did.
    pub(super) async fn write(
        &self,
        slots: &Arc<dyn Slots>,
        account: &Account,
        now: Timestamp,
    ) -> Result<bool, VaultError> {
        // Serialization never fails for strings and numbers.
        let content = serde_json::to_vec(&self.occupied).unwrap_or_default();
        slots.replace(&account.places_slot(), self.version, content, Some(self.ttl(now))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> SessionPlaces {
        SessionPlaces { occupied: Vec::new(), version: 0 }
    }

    fn add(places: &mut SessionPlaces, id: &str) -> u16 {
        places.add(id.to_owned(), Timestamp::from_millis(1_000), 10, 3)
    }

    #[test]
    fn a_free_place_is_used_before_that_of_the_oldest() {
        let mut places = places();
        let used: Vec<_> = ["a", "b", "c"].iter().map(|id| add(&mut places, id)).collect();
        assert_eq!(used, [0, 1, 2]);

        assert!(places.remove("b") && !places.remove("b"));
        assert_eq!(add(&mut places, "d"), 1);
        assert_eq!(add(&mut places, "e"), 0, "the place of the oldest");
        assert_eq!(add(&mut places, "f"), 2);
        assert_eq!(places.bytes(), 30);
    }

    #[test]
    fn the_latest_session_stays_alone() {
        let mut places = places();
        assert_eq!(places.keep_latest(), [0_u16; 0]);

        for id in ["a", "b", "c"] {
            add(&mut places, id);
        }

        assert_eq!(places.keep_latest(), [0, 1]);
        assert_eq!((places.bytes(), places.occupied[0].place), (10, 2));
    }
}
