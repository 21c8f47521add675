//! [`LedgerReservations`]: the reservations of one owner. Records of the owner's ledger hold them,
//! so that all instances see them.

use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

/// The reservations of one owner: ID, end and bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct LedgerReservations(Vec<(String, Timestamp, u64)>);

impl LedgerReservations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The bytes of all reservations.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(.., bytes)| bytes).sum()
    }

    /// The bytes of the reservations that have not ended at `now`.
    pub(super) fn bytes_at(&self, now: Timestamp) -> u64 {
        self.0.iter().filter(|(_, until, _)| *until > now).map(|(.., bytes)| bytes).sum()
    }

    /// The end and the bytes of a reservation that has not ended.
    pub(super) fn of(&self, now: Timestamp, id: &str) -> Option<(Timestamp, u64)> {
        let found = self.0.iter().find(|(other, until, _)| *until > now && other == id);
        found.map(|(_, until, bytes)| (*until, *bytes))
    }

    pub(super) fn add(&mut self, id: &str, until: Timestamp, bytes: u64) {
        self.0.push((id.to_owned(), until, bytes));
    }

    /// A copy without ended reservations and without `id`.
    pub(super) fn without(mut self, now: Timestamp, id: &str) -> Self {
        self.0.retain(|(other, until, _)| *until > now && other != id);
        self
    }
}
