//! Who watches what of somebody else's.

use std::collections::{BTreeSet, HashMap};

use super::Watch;
use crate::{auth::Owner, clock::Timestamp};

/// A resource, by its owner and its name.
type Resource = (Owner, String);

#[derive(Debug, Default)]
pub(super) struct Watches {
    by_resource: HashMap<Resource, HashMap<Watch, Timestamp>>,
    /// When to look whether one of them is over.
    due: BTreeSet<(Timestamp, Resource)>,
}

impl Watches {
    pub(super) fn add(
        &mut self,
        resource: Resource,
        watch: Watch,
        until: Timestamp,
        now: Timestamp,
    ) {
        self.tidy(now);
        self.by_resource.entry(resource.clone()).or_default().insert(watch, until);
        self.due.insert((until, resource));
    }

    pub(super) fn of(&mut self, resource: &Resource, now: Timestamp) -> Vec<Watch> {
        self.tidy(now);
        self.by_resource.get(resource).into_iter().flat_map(HashMap::keys).cloned().collect()
    }

    /// Forgets those that are over, so that none has to be looked for.
    fn tidy(&mut self, now: Timestamp) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, resource)) = self.due.pop_first() else { break };
            if let Some(watches) = self.by_resource.get_mut(&resource) {
                watches.retain(|_, until| *until > now);
                if watches.is_empty() {
                    self.by_resource.remove(&resource);
                }
            }
        }
    }
}
