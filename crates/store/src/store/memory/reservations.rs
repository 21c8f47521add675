//! Reservations for content that arrives in several requests. A reservation ends by itself.

use std::collections::{BTreeSet, HashMap};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::account::Charge;

/// The reservations of all owners. Both maps have the same reservations: one finds a reservation by
/// its ID, the other one by the time of its end.
#[derive(Default)]
pub(super) struct Reservations {
    by_owner: HashMap<Owner, HashMap<String, Reservation>>,
    by_expiry: BTreeSet<(Timestamp, Owner, String)>,
}

/// Bytes that are reserved until a time.
pub(super) struct Reservation {
    pub(super) charge: Charge,
    pub(super) until: Timestamp,
}

impl Reservations {
    pub(super) fn count(&self, owner: &Owner) -> u64 {
        self.by_owner.get(owner).map_or(0, |reserved| reserved.len() as u64)
    }

    pub(super) fn insert(&mut self, owner: &Owner, id: &str, reserved: Reservation) {
        self.by_expiry.insert((reserved.until, owner.clone(), id.to_owned()));
        self.by_owner.entry(owner.clone()).or_default().insert(id.to_owned(), reserved);
    }

    pub(super) fn take(&mut self, owner: &Owner, id: &str) -> Option<Reservation> {
        let of_owner = self.by_owner.get_mut(owner)?;
        let reserved = of_owner.remove(id)?;
        if of_owner.is_empty() {
            self.by_owner.remove(owner);
        }

        self.by_expiry.remove(&(reserved.until, owner.clone(), id.to_owned()));
        Some(reserved)
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(at, ..)| *at)
    }

    /// Ends the reservations of an owner that have expired at `now`.
    pub(super) fn end_expired_of(&mut self, owner: &Owner, now: Timestamp) {
        let Some(of_owner) = self.by_owner.get(owner) else { return };
        let ended = of_owner.iter().filter(|(_, reserved)| reserved.until <= now);
        let ended: Vec<String> = ended.map(|(id, _)| id.clone()).collect();

        for id in ended {
            self.take(owner, &id);
        }
    }

    /// Ends the first reservation of any owner that has expired at `now`. Returns its owner.
    pub(super) fn end_next_expired(&mut self, now: Timestamp) -> Option<Owner> {
        let (at, owner, id) = self.by_expiry.first()?;
        if *at > now {
            return None;
        }

        let owner = owner.clone();
        let id = id.clone();
        self.take(&owner, &id);
        Some(owner)
    }
}
