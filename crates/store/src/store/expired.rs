//! [`Expired`]: recently expired resources, so that the error for a request tells when the
//! resource expired.

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, UnitWeighter,
    sync::{Cache, DefaultLifecycle},
};

use super::ResourceUri;

/// How many expiries are remembered.
const CAPACITY: usize = 4096;

/// The times at which recently expired resources expired. Forgets the oldest first.
#[derive(Debug)]
pub(super) struct Expired(Cache<(Owner, ResourceUri), Timestamp>);

impl Default for Expired {
    fn default() -> Self {
        // A single shard and no part for hot entries, so that the order of eviction is
        // the order of expiry: requests mostly ask for the latest expiries.
        let options = OptionsBuilder::new()
            .shards(1)
            .hot_allocation(0.0)
            .ghost_allocation(0.0)
            .estimated_items_capacity(CAPACITY)
            .weight_capacity(CAPACITY as u64)
            .build()
            .expect("the capacities are set");

        Self(Cache::with_options(
            options,
            UnitWeighter,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ))
    }
}

impl Expired {
    /// Notes that a resource expired at `at`.
    pub(super) fn remember(&self, owner: Owner, uri: ResourceUri, at: Timestamp) {
        self.0.insert((owner, uri), at);
    }

    /// Forgets a URI that is in use again.
    pub(super) fn forget(&self, owner: &Owner, uri: &ResourceUri) {
        self.0.remove(&(owner.clone(), uri.clone()));
    }

    /// When the resource expired, if the expiry is remembered.
    pub(super) fn at(&self, owner: &Owner, uri: &ResourceUri) -> Option<Timestamp> {
        // `peek` leaves the order of eviction as it is.
        self.0.peek(&(owner.clone(), uri.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_expiries_are_remembered() {
        let expired = Expired::default();
        let owner = Owner::new("alice");
        let uri = |n: usize| ResourceUri::parse(&format!("x:{n}")).expect("it is a URI");
        let at = |n: usize| Timestamp::from_millis(n as u64);

        let count = 2 * CAPACITY;
        for n in 0..count {
            expired.remember(owner.clone(), uri(n), at(n));
            assert_eq!(expired.at(&owner, &uri(n)), Some(at(n)));
        }

        // The cache keeps one entry, the very first, out of the order.
        assert_eq!(expired.0.len(), CAPACITY);
        let oldest = count - (CAPACITY - 1);
        assert_eq!(expired.at(&owner, &uri(oldest - 1)), None);

        for n in oldest..count {
            assert_eq!(expired.at(&owner, &uri(n)), Some(at(n)));
        }
        assert_eq!(expired.at(&Owner::new("bob"), &uri(oldest)), None);

        expired.forget(&owner, &uri(oldest));
        assert_eq!(expired.at(&owner, &uri(oldest)), None);

        // A URI that expires again is new in the order, and has the new time.
        expired.remember(owner.clone(), uri(oldest), at(9));
        expired.remember(owner.clone(), uri(count), at(9));
        assert_eq!(expired.at(&owner, &uri(oldest)), Some(at(9)));
        assert_eq!(expired.0.len(), CAPACITY);
    }
}
