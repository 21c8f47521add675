//! The changes of all owners, for one consumer. They are coalesced by resource until the
//! consumer takes them, owner by owner in turn, so that a busy owner delays no other owner.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use larder_identity::Owner;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Change, ChangeKind, ResourceUri};

/// The maximum number of changes of one owner that the consumer takes at a time.
const TURN: usize = 64;

/// The maximum number of changed resources that wait per owner. Further changes are lost.
const MAX_WAITING: usize = 10_000;

/// The maximum number of change IDs that are kept per resource: the latest.
const MAX_IDS: usize = 64;

/// The subject of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Changed {
    /// The list of the owner's resources.
    List,
    /// A resource.
    Resource(ResourceUri),
}

/// All waiting changes of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoalescedChange {
    /// The subject of the changes.
    pub changed: Changed,
    /// Whether the resource has new content, and not only ceased to exist.
    pub has_new_content: bool,
    /// The IDs of the latest changes.
    pub ids: Vec<Arc<str>>,
}

/// Changes of one owner. The owner's next turn comes after this value is dropped.
#[derive(Debug)]
pub struct OwnerTurn {
    /// The owner.
    pub owner: Owner,
    /// The changes, by the time at which each subject first changed.
    pub changes: Vec<CoalescedChange>,
    queue: Arc<ChangeQueue>,
}

/// The next changes that the consumer takes.
#[derive(Debug)]
pub enum NextChanges {
    /// Changes of one owner.
    Of(OwnerTurn),
    /// Changes were missed; which changes and of which owners is unknown.
    Missed,
}

/// The waiting changes. Memory is bounded by the number of resources that each owner changes
/// between two turns.
#[derive(Debug, Default)]
pub struct ChangeQueue {
    state: Mutex<QueueState>,
    added: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    owners: HashMap<Owner, WaitingChanges>,
    /// The owners with changes whose turn has not begun.
    ready: VecDeque<Owner>,
    /// The owners whose turn has not ended.
    taken: HashSet<Owner>,
    missed: bool,
}

/// The changes of one owner.
#[derive(Debug, Default)]
struct WaitingChanges {
    order: VecDeque<Changed>,
    changes: HashMap<Changed, CoalescedChange>,
    /// Whether changes have been lost since the consumer last took changes.
    has_lost: bool,
}

impl ChangeQueue {
    /// Adds a change. Never waits.
    pub(super) fn push(&self, change: &Change) {
        let resource = || Changed::Resource(change.uri.clone());
        let subjects = match change.kind {
            ChangeKind::Created => [Some(Changed::List), None],
            ChangeKind::Updated => [None, Some(resource())],
            ChangeKind::Deleted | ChangeKind::Expired => [Some(Changed::List), Some(resource())],
        };

        {
            let mut state = self.state.lock();
            if !state.owners.contains_key(&change.owner) && !state.taken.contains(&change.owner) {
                state.ready.push_back(change.owner.clone());
            }

            let waiting = state.owners.entry(change.owner.clone()).or_default();
            for subject in subjects.into_iter().flatten() {
                waiting.add(subject, change);
            }
        }

        self.added.notify_one();
    }

    /// Notes that changes were missed.
    pub(super) fn push_missed(&self) {
        self.state.lock().missed = true;
        self.added.notify_one();
    }

    /// Waits for the next changes. Safe to cancel.
    pub async fn next(self: &Arc<Self>) -> NextChanges {
        loop {
            let added = self.added.notified();
            if let Some(next) = self.try_next() {
                return next;
            }
            added.await;
        }
    }

    /// The next changes, if any wait.
    fn try_next(self: &Arc<Self>) -> Option<NextChanges> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.missed) {
            return Some(NextChanges::Missed);
        }

        let owner = state.ready.pop_front()?;
        let waiting = state.owners.get_mut(&owner)?;
        let changes = waiting.take(TURN);
        if waiting.order.is_empty() {
            state.owners.remove(&owner);
        }

        state.taken.insert(owner.clone());
        Some(NextChanges::Of(OwnerTurn { owner, changes, queue: Arc::clone(self) }))
    }
}

impl WaitingChanges {
    /// Adds a change of a subject. The change is lost if too many subjects wait.
    fn add(&mut self, subject: Changed, change: &Change) {
        let is_new = !self.changes.contains_key(&subject);
        if is_new && self.order.len() >= MAX_WAITING {
            if !std::mem::replace(&mut self.has_lost, true) {
                tracing::warn!(
                    "an owner changes resources faster than its sessions are notified: some changes are not announced"
                );
            }
            return;
        }
        if is_new {
            self.order.push_back(subject.clone());
        }

        let has_new_content = change.kind == ChangeKind::Updated;
        let coalesced = self.changes.entry(subject.clone()).or_insert_with(|| CoalescedChange {
            changed: subject,
            has_new_content,
            ids: Vec::new(),
        });
        coalesced.has_new_content |= has_new_content;

        if let Some(id) = &change.id {
            if coalesced.ids.len() >= MAX_IDS {
                coalesced.ids.remove(0);
            }
            coalesced.ids.push(Arc::clone(id));
        }
    }

    /// Takes the first `count` changes.
    fn take(&mut self, count: usize) -> Vec<CoalescedChange> {
        self.has_lost = false;
        let count = count.min(self.order.len());
        self.order.drain(..count).filter_map(|subject| self.changes.remove(&subject)).collect()
    }
}

impl Drop for OwnerTurn {
    fn drop(&mut self) {
        {
            let mut state = self.queue.state.lock();
            state.taken.remove(&self.owner);
            if state.owners.contains_key(&self.owner) {
                state.ready.push_back(self.owner.clone());
            }
        }
        self.queue.added.notify_one();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::ChangeFeed;

    fn change(owner: &str, uri: &str, kind: ChangeKind, id: u64) -> Change {
        let id = Some(id.to_string().into());
        Change { owner: Owner::new(owner), uri: ResourceUri::parse(uri).unwrap(), kind, id }
    }

    async fn turn(queue: &Arc<ChangeQueue>) -> OwnerTurn {
        match queue.next().await {
            NextChanges::Of(turn) => turn,
            NextChanges::Missed => panic!("nothing was missed"),
        }
    }

    #[tokio::test]
    async fn a_busy_owner_is_coalesced_and_takes_turns_with_the_others() {
        let feed = ChangeFeed::new();
        let queue = feed.queue();
        for id in 0..10_000 {
            feed.publish(change("busy", &format!("x:{}", id % 100), ChangeKind::Updated, id));
            if id % 1000 == 0 {
                feed.publish(change("quiet", &format!("x:{id}"), ChangeKind::Updated, id));
            }
        }

        let first = turn(&queue).await;
        assert_eq!((first.owner.as_str(), first.changes.len()), ("busy", TURN));
        assert_eq!(first.changes[0].ids.last().map(|id| &**id), Some("9900"));

        // The busy owner's next turn begins after its first turn has ended, and after the turn
        // of the other owner.
        feed.publish(change("busy", "x:0", ChangeKind::Updated, 10_001));
        let quiet = turn(&queue).await;
        assert_eq!((quiet.owner.as_str(), quiet.changes.len()), ("quiet", 10));
        assert!(queue.try_next().is_none());

        drop((first, quiet));
        let rest = turn(&queue).await;
        assert_eq!((rest.owner.as_str(), rest.changes.len()), ("busy", 37));
        drop(rest);

        assert!(queue.try_next().is_none());
        let state = queue.state.lock();
        assert!(state.owners.is_empty() && state.taken.is_empty() && state.ready.is_empty());
    }

    #[tokio::test]
    async fn changes_that_wait_for_one_owner_are_bounded_and_others_lose_nothing() {
        let feed = ChangeFeed::new();
        let queue = feed.queue();
        let many = MAX_WAITING as u64 + 10;

        for id in 0..many {
            feed.publish(change("busy", &format!("x:{id}"), ChangeKind::Updated, id));
        }
        feed.publish(change("quiet", "x:1", ChangeKind::Deleted, many));

        let busy = queue.state.lock().owners[&Owner::new("busy")].order.len();
        assert_eq!(busy, MAX_WAITING);

        let _busy = turn(&queue).await;
        let quiet = turn(&queue).await;
        let changed: Vec<_> = quiet.changes.iter().map(|c| c.changed.clone()).collect();
        let resource = Changed::Resource(ResourceUri::parse("x:1").unwrap());
        assert_eq!(changed, [Changed::List, resource]);

        feed.publish_missed();
        assert!(matches!(queue.next().await, NextChanges::Missed));
    }
}
