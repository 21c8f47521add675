//! [`Account`] and [`Charge`]: they count bytes as long as the bytes are in memory.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The bytes that count for one owner, or for all owners. It grows only while the resources are
/// locked, and shrinks at any time.
#[derive(Debug, Clone, Default)]
pub(super) struct Account(Arc<AtomicU64>);

impl Account {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Whether no charge shares the account.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Bytes that are charged to an owner and to the total until this value is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    owner: Account,
    total: Account,
    bytes: u64,
}

impl Charge {
    /// A charge of no bytes.
    pub(super) fn new(owner: &Account, total: &Account) -> Self {
        Self { owner: owner.clone(), total: total.clone(), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back the bytes that exceed `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let excess = self.bytes.saturating_sub(bytes);
        self.bytes -= excess;
        self.owner.0.fetch_sub(excess, Ordering::AcqRel);
        self.total.0.fetch_sub(excess, Ordering::AcqRel);
    }

    pub(super) fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.owner.0.fetch_add(bytes, Ordering::AcqRel);
        self.total.0.fetch_add(bytes, Ordering::AcqRel);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.owner.0.fetch_sub(self.bytes, Ordering::AcqRel);
        self.total.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
