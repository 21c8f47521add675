//! The watches of shared resources.

use std::collections::{BTreeSet, HashMap};

use super::Watch;
use crate::{auth::Owner, clock::Timestamp};

/// A resource, by owner and URI.
type Resource = (Owner, String);

#[derive(Debug, Default)]
pub(super) struct Watches {
    by_resource: HashMap<Resource, HashMap<Watch, Timestamp>>,
    /// The resources by the expiry of a watch.
    by_expiry: BTreeSet<(Timestamp, Resource)>,
}

impl Watches {
    pub(super) fn add(
        &mut self,
        resource: Resource,
        watch: Watch,
        until: Timestamp,
        now: Timestamp,
    ) {
        self.remove_expired(now);
        self.by_resource.entry(resource.clone()).or_default().insert(watch, until);
        self.by_expiry.insert((until, resource));
    }

    pub(super) fn get(&mut self, resource: &Resource, now: Timestamp) -> Vec<Watch> {
        self.remove_expired(now);
        self.by_resource.get(resource).into_iter().flat_map(HashMap::keys).cloned().collect()
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while self.by_expiry.first().is_some_and(|(expiry, _)| *expiry <= now) {
            let Some((_, resource)) = self.by_expiry.pop_first() else { break };
            if let Some(watches) = self.by_resource.get_mut(&resource) {
                watches.retain(|_, until| *until > now);
                if watches.is_empty() {
                    self.by_resource.remove(&resource);
                }
            }
        }
    }
}
