//! [`Watches`]: the subscribers of shared resources, and when their watches expire.

use std::sync::Arc;

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::Watch;
use crate::expiring::ExpiringMap;

/// A resource, by owner and URI.
type WatchedResource = (Owner, Arc<str>);

/// The watches of all resources, ordered by resource.
#[derive(Debug, Default)]
pub(super) struct Watches(ExpiringMap<(WatchedResource, Watch), ()>);

impl Watches {
    /// Records a watch, or extends a recorded one.
    pub(super) fn add(
        &mut self,
        resource: WatchedResource,
        watch: Watch,
        until: Timestamp,
        now: Timestamp,
    ) {
        self.remove_expired(now);
        self.0.insert((resource, watch), (), until);
    }

    /// The watches of a resource that have not expired.
    pub(super) fn get(&mut self, resource: &WatchedResource, now: Timestamp) -> Vec<Watch> {
        self.remove_expired(now);

        let least = Watch { reader: Owner::new(""), link: String::new() };
        let watches = self.0.range((resource.clone(), least)..).map(|(key, ())| key);
        let of_resource = watches.take_while(|(watched, _)| watched == resource);
        of_resource.map(|(_, watch)| watch.clone()).collect()
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while self.0.pop_expired(now).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watches_of_a_resource_are_not_those_of_the_next_one() {
        let mut watches = Watches::default();
        let at = Timestamp::from_millis;
        let watch = |reader| Watch { reader: Owner::new(reader), link: "l:1".into() };
        let resource = |uri: &str| (Owner::new("alice"), uri.into());

        for (uri, reader) in [("a:1", "bob"), ("a:2", ""), ("a:2", "carol"), ("a:3", "bob")] {
            watches.add(resource(uri), watch(reader), at(10), at(0));
        }

        assert_eq!(watches.get(&resource("a:2"), at(1)), [watch(""), watch("carol")]);
        assert!(watches.get(&resource("a:"), at(1)).is_empty());
    }

    #[test]
    fn a_watch_that_is_recorded_again_takes_no_more_memory() {
        let mut watches = Watches::default();
        let at = Timestamp::from_millis;
        let resource = (Owner::new("alice"), "a:1".into());
        let watch = Watch { reader: Owner::new("bob"), link: "l:1".into() };
        for n in 0..1_000 {
            watches.add(resource.clone(), watch.clone(), at(10_000 + n), at(n));
        }

        assert_eq!(watches.0.len(), 1);
        assert_eq!(watches.get(&resource, at(10_998)), [watch]);
        assert!(watches.get(&resource, at(10_999)).is_empty());
        assert!(watches.0.is_empty());
    }
}
