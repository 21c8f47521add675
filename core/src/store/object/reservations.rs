//! [`Reserved`]: the reservations of one owner, in the records of the ledger, so that all instances
//! see them.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// The reservations of one owner: their IDs, ends and bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Reserved(Vec<(String, Timestamp, u64)>);

impl Reserved {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many bytes are reserved.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(.., bytes)| bytes).sum()
    }

    /// How many bytes of them are reserved at that time.
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

    /// The same without those that have ended, and without that one.
    pub(super) fn without(mut self, now: Timestamp, id: &str) -> Self {
        self.0.retain(|(other, until, _)| *until > now && other != id);
        self
    }
}
