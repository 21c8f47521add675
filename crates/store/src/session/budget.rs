//! [`ReplayBudget`]: limits the bytes of finished streams that can still be resumed.

use std::{collections::HashMap, sync::Arc};

use larder_identity::Owner;
use parking_lot::Mutex;

use super::SessionLimits;

/// Counts the bytes of the streams that this process has finished and that can be resumed, by owner
/// and in total.
#[derive(Debug)]
pub(super) struct ReplayBudget {
    max: usize,
    max_per_owner: usize,
    used: Mutex<UsedBytes>,
}

#[derive(Debug, Default)]
struct UsedBytes {
    total: usize,
    owners: HashMap<Owner, usize>,
}

/// Bytes of the budget, reserved until this value is dropped.
#[derive(Debug)]
pub(super) struct ReplayReservation {
    budget: Arc<ReplayBudget>,
    owner: Owner,
    bytes: usize,
}

impl ReplayBudget {
    pub(super) fn new(limits: &SessionLimits) -> Arc<Self> {
        Arc::new(Self {
            max: limits.replay_bytes,
            max_per_owner: limits.replay_bytes_per_principal,
            used: Mutex::default(),
        })
    }

    /// Reserves bytes, or returns `None` if that exceeds the owner's limit or the total.
    pub(super) fn reserve(
        self: &Arc<Self>,
        owner: &Owner,
        bytes: usize,
    ) -> Option<ReplayReservation> {
        let mut used = self.used.lock();
        let of_owner = used.owners.get(owner).copied().unwrap_or(0);
        if used.total + bytes > self.max || of_owner + bytes > self.max_per_owner {
            return None;
        }

        used.total += bytes;
        used.owners.insert(owner.clone(), of_owner + bytes);
        Some(ReplayReservation { budget: Arc::clone(self), owner: owner.clone(), bytes })
    }
}

impl Drop for ReplayReservation {
    fn drop(&mut self) {
        let mut used = self.budget.used.lock();
        used.total -= self.bytes;

        if let Some(of_owner) = used.owners.get_mut(&self.owner) {
            *of_owner -= self.bytes;
            if *of_owner == 0 {
                used.owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_limited_per_owner_and_in_total_and_given_back() {
        let limits = SessionLimits {
            replay_bytes: 15,
            replay_bytes_per_principal: 10,
            ..SessionLimits::default()
        };
        let budget = ReplayBudget::new(&limits);
        let ana = Owner::new("ana");
        let bea = Owner::new("bea");

        let first = budget.reserve(&ana, 10).expect("it fits");
        assert!(budget.reserve(&ana, 1).is_none(), "more than one owner may have");
        assert!(budget.reserve(&bea, 6).is_none(), "more than all may have");
        let second = budget.reserve(&bea, 5).expect("it fits");

        drop(first);
        assert!(budget.reserve(&bea, 5).is_some() && budget.reserve(&ana, 10).is_some());

        drop(second);
        let used = budget.used.lock();
        assert!(used.total == 0 && used.owners.is_empty());
    }
}
