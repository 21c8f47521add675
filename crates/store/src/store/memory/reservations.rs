//! [`MemoryReservations`]: bytes that are reserved for content which arrives in several requests. A
//! reservation ends by itself.

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::account::Charge;
use crate::expiring::ExpiringMap;

/// The reservations of all owners, by their ID.
#[derive(Default)]
pub(super) struct MemoryReservations {
    /// The owners with reservations. An owner expires with its first reservation.
    owners: ExpiringMap<Owner, ExpiringMap<String, MemoryReservation>>,
}

/// Bytes that are reserved until a time.
pub(super) struct MemoryReservation {
    pub(super) charge: Charge,
    pub(super) until: Timestamp,
}

impl MemoryReservations {
    pub(super) fn count(&self, owner: &Owner) -> u64 {
        self.owners.get(owner).map_or(0, |reserved| reserved.len() as u64)
    }

    pub(super) fn insert(&mut self, owner: &Owner, id: &str, reserved: MemoryReservation) {
        let of_owner = self.owners.get_or_insert_with(owner.clone(), ExpiringMap::default);
        let until = reserved.until;
        of_owner.insert(id.to_owned(), reserved, until);

        let next = of_owner.next_expiry();
        self.owners.renew(owner, next);
    }

    pub(super) fn take(&mut self, owner: &Owner, id: &str) -> Option<MemoryReservation> {
        self.remove_with(owner, |reserved| reserved.remove(id))
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.owners.next_expiry()
    }

    /// Ends the reservations of an owner that have expired at `now`.
    pub(super) fn end_expired_of(&mut self, owner: &Owner, now: Timestamp) {
        while self.remove_with(owner, |reserved| reserved.pop_expired(now)).is_some() {}
    }

    /// Ends the first reservation of any owner that has expired at `now`. Returns its owner.
    pub(super) fn end_next_expired(&mut self, now: Timestamp) -> Option<Owner> {
        let owner = self.owners.next_expired(now)?.clone();
        self.remove_with(&owner, |reserved| reserved.pop_expired(now))?;
        Some(owner)
    }

    /// Removes a reservation of an owner, and the owner with the last one.
    fn remove_with<T>(
        &mut self,
        owner: &Owner,
        remove: impl FnOnce(&mut ExpiringMap<String, MemoryReservation>) -> Option<T>,
    ) -> Option<T> {
        let of_owner = self.owners.get_mut(owner)?;
        let removed = remove(of_owner)?;

        let next = of_owner.next_expiry();
        if of_owner.is_empty() {
            self.owners.remove(owner);
        } else {
            self.owners.renew(owner, next);
        }

        Some(removed)
    }
}
