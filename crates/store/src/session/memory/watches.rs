//! [`Watches`]: the subscribers of shared resources, and when their watches expire.

use std::collections::{BTreeSet, HashMap};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::Watch;

/// A resource, by owner and URI.
type Resource = (Owner, String);

/// The watches of all resources. Both maps have the same watches: one finds the watches of a
/// resource, the other one the next watch to expire.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// The watches of a resource with their expiries.
    by_resource: HashMap<Resource, HashMap<Watch, Timestamp>>,
    /// The watches ordered by their expiry.
    by_expiry: BTreeSet<(Timestamp, Resource, Watch)>,
}

impl Watches {
    /// Records a watch, or extends a recorded one.
    pub(super) fn add(
        &mut self,
        resource: Resource,
        watch: Watch,
        until: Timestamp,
        now: Timestamp,
    ) {
        self.remove_expired(now);

        let watches = self.by_resource.entry(resource.clone()).or_default();
        if let Some(before) = watches.insert(watch.clone(), until) {
            self.by_expiry.remove(&(before, resource.clone(), watch.clone()));
        }
        self.by_expiry.insert((until, resource, watch));
    }

    /// The watches of a resource that have not expired.
    pub(super) fn get(&mut self, resource: &Resource, now: Timestamp) -> Vec<Watch> {
        self.remove_expired(now);
        self.by_resource.get(resource).into_iter().flat_map(HashMap::keys).cloned().collect()
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while self.by_expiry.first().is_some_and(|(expiry, ..)| *expiry <= now) {
            let Some((_, resource, watch)) = self.by_expiry.pop_first() else { break };

            if let Some(watches) = self.by_resource.get_mut(&resource) {
                watches.remove(&watch);
                if watches.is_empty() {
                    self.by_resource.remove(&resource);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_is_recorded_again_takes_no_more_memory() {
        let mut watches = Watches::default();
        let at = Timestamp::from_millis;
        let resource = (Owner::new("alice"), "a:1".to_owned());
        let watch = Watch { reader: Owner::new("bob"), link: "l:1".into() };
        for n in 0..1_000 {
            watches.add(resource.clone(), watch.clone(), at(10_000 + n), at(n));
        }

        assert_eq!(watches.by_expiry.len(), 1);
        assert_eq!(watches.get(&resource, at(10_998)), [watch]);
        assert!(watches.get(&resource, at(10_999)).is_empty());
        assert!(watches.by_resource.is_empty() && watches.by_expiry.is_empty());
    }
}
