//! [`FairQueue`]: a queue in which owners take turns, so that the many items of one
//! owner delay nobody else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::Busy;

/// How many items may wait and run.
#[derive(Debug, Clone)]
pub(super) struct QueueLimits {
    /// Running items of one owner.
    pub(super) running_per_owner: usize,
    /// Waiting items of one owner.
    pub(super) waiting_per_owner: usize,
    /// Waiting items of all owners.
    pub(super) waiting: usize,
}

/// Waiting items by owner. Every operation takes logarithmic time.
pub(super) struct FairQueue<T> {
    limits: QueueLimits,
    owners: HashMap<Arc<str>, QueueOwner<T>>,
    /// The owners that have an item to run, in the order of their turns.
    turns: BTreeMap<u64, Arc<str>>,
    waiting: usize,
    next_id: u64,
}

struct QueueOwner<T> {
    waiting: BTreeMap<u64, T>,
    running: usize,
    /// The job's key in `turns`.
    turn: Option<u64>,
}

/// Identifies a waiting item.
#[derive(Debug, Clone)]
pub(super) struct QueueTicket {
    pub(super) owner: Arc<str>,
    id: u64,
}

impl<T> FairQueue<T> {
    pub(super) fn new(limits: QueueLimits) -> Self {
        let owners = HashMap::new();
        let turns = BTreeMap::new();
        Self { limits, owners, turns, waiting: 0, next_id: 0 }
    }

    pub(super) fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    /// Adds an item.
    ///
    /// # Errors
    /// Too many items wait, of this owner or of all.
    pub(super) fn push(&mut self, owner: &str, item: T) -> Result<QueueTicket, Busy> {
        if self.waiting >= self.limits.waiting {
            return Err(Busy::All { limit: self.limits.waiting, setting: "compute.queued" });
        }
        let owner = match self.owners.get_key_value(owner) {
            Some((_, state)) if state.waiting.len() >= self.limits.waiting_per_owner => {
                let limit = self.limits.waiting_per_owner;
                return Err(Busy::Owner { limit, setting: "compute.queued_per_owner" });
            }
            Some((owner, _)) => Arc::clone(owner),
            None => {
                let owner = Arc::<str>::from(owner);
                let state = QueueOwner { waiting: BTreeMap::new(), running: 0, turn: None };
                self.owners.insert(Arc::clone(&owner), state);
                owner
            }
        };
        let id = self.next_id();
        if let Some(state) = self.owners.get_mut(&owner) {
            state.waiting.insert(id, item);
            self.waiting += 1;
        }
        self.schedule(&owner);
        Ok(QueueTicket { owner, id })
    }

    /// Takes the first item of the owner whose turn it is. The item runs until
    /// [`finished`](Self::finished).
    pub(super) fn pop(&mut self) -> Option<(QueueTicket, T)> {
        let (_, owner) = self.turns.pop_first()?;
        let state = self.owners.get_mut(&owner)?;
        state.turn = None;
        let (id, item) = state.waiting.pop_first()?;
        state.running += 1;
        self.waiting -= 1;
        self.schedule(&owner);
        Some((QueueTicket { owner, id }, item))
    }

    /// Whether an item may run at once.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Ends an item that was taken.
    pub(super) fn finished(&mut self, owner: &Arc<str>) {
        if let Some(state) = self.owners.get_mut(owner) {
            state.running -= 1;
        }
        self.schedule(owner);
    }

    /// Removes an item that still waits.
    pub(super) fn cancel(&mut self, ticket: &QueueTicket) -> Option<T> {
        let item = self.owners.get_mut(&ticket.owner)?.waiting.remove(&ticket.id)?;
        self.waiting -= 1;
        self.schedule(&ticket.owner);
        Some(item)
    }

    /// Gives the owner a turn, or takes it, according to what waits and runs.
    fn schedule(&mut self, owner: &Arc<str>) {
        let id = self.next_id();
        let Some(state) = self.owners.get_mut(owner) else { return };
        let ready =
            !state.waiting.is_empty() && state.running < self.limits.running_per_owner.max(1);
        match (ready, state.turn) {
            (true, None) => {
                state.turn = Some(id);
                self.turns.insert(id, Arc::clone(owner));
            }
            (false, Some(turn)) => {
                state.turn = None;
                self.turns.remove(&turn);
            }
            _ => {}
        }
        if state.waiting.is_empty() && state.running == 0 {
            self.owners.remove(owner);
        }
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn queue() -> FairQueue<u32> {
        FairQueue::new(QueueLimits { running_per_owner: 2, waiting_per_owner: 3, waiting: 5 })
    }

    #[test]
    fn owners_take_turns_and_nobody_runs_more_than_its_share() {
        let mut queue = queue();
        for (owner, item) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)] {
            queue.push(owner, item).unwrap();
        }
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop().map(|(_, item)| item)).collect();
        assert_eq!(order, [1, 4, 5, 2], "the third of a waits until one of a ends");
        queue.finished(&"a".into());
        assert_eq!(queue.pop().map(|(_, item)| item), Some(3));
        for owner in ["a", "a", "b", "c"] {
            queue.finished(&owner.into());
        }
        assert!(queue.owners.is_empty() && queue.turns.is_empty() && queue.waiting == 0);
    }

    #[test]
    fn what_waits_is_bounded_for_one_owner_and_for_all() {
        let mut queue = queue();
        for item in 0..3 {
            queue.push("a", item).unwrap();
        }
        let refused = queue.push("a", 3).unwrap_err().to_string();
        assert!(refused.contains("3 pieces") && refused.contains("compute.queued_per_owner"));
        queue.push("b", 4).unwrap();
        queue.push("b", 5).unwrap();
        let refused = queue.push("c", 6).unwrap_err().to_string();
        assert!(refused.contains("5 pieces") && refused.contains("(compute.queued)"));
    }

    #[test]
    fn a_cancelled_item_leaves_no_trace() {
        let mut queue = queue();
        let ticket = queue.push("a", 1).unwrap();
        queue.push("b", 2).unwrap();
        assert_eq!(queue.cancel(&ticket), Some(1));
        assert_eq!(queue.cancel(&ticket), None);
        assert_eq!(queue.pop().map(|(_, item)| item), Some(2));
        assert!(queue.pop().is_none());
        queue.finished(&"b".into());
        assert!(queue.owners.is_empty() && queue.turns.is_empty());
    }
}
