//! [`Turns`]: how many queries run at once. One owner never takes all turns.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::auth::Owner;

/// The turns of all owners.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    per_owner: usize,
    /// The owners that run a query or wait for a turn.
    owners: Arc<Mutex<HashMap<Owner, OwnerTurns>>>,
}

#[derive(Debug)]
struct OwnerTurns {
    semaphore: Arc<Semaphore>,
    /// The number of queries that run or wait.
    users: usize,
}

/// The permission to run one query. It ends with the value.
#[derive(Debug)]
pub(super) struct Turn {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _user: User,
}

impl Turns {
    pub(super) fn new(concurrent: usize) -> Self {
        let concurrent = concurrent.max(1);
        Self {
            all: Arc::new(Semaphore::new(concurrent)),
            // One worker is left for others.
            per_owner: (concurrent - 1).max(1),
            owners: Arc::default(),
        }
    }

    /// Waits for a turn, in order of arrival; `None` if it takes too long.
    pub(super) async fn next(&self, owner: &Owner, patience: Duration) -> Option<Turn> {
        timeout(patience, async {
            let (user, own) = self.enter(owner);
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Turn { _all: all, _own: own, _user: user })
        })
        .await
        .ok()
        .flatten()
    }

    /// How many queries run.
    pub(super) fn running(&self, concurrent: usize) -> usize {
        concurrent.saturating_sub(self.all.available_permits())
    }

    fn enter(&self, owner: &Owner) -> (User, Arc<Semaphore>) {
        let mut owners = self.owners.lock();
        let turns = owners.entry(owner.clone()).or_insert_with(|| OwnerTurns {
            semaphore: Arc::new(Semaphore::new(self.per_owner)),
            users: 0,
        });
        turns.users += 1;
        let user = User { owner: owner.clone(), owners: Arc::clone(&self.owners) };
        (user, Arc::clone(&turns.semaphore))
    }
}

/// Counts one query of an owner.
#[derive(Debug)]
struct User {
    owner: Owner,
    owners: Arc<Mutex<HashMap<Owner, OwnerTurns>>>,
}

impl Drop for User {
    fn drop(&mut self) {
        let mut owners = self.owners.lock();
        if let Some(turns) = owners.get_mut(&self.owner) {
            turns.users -= 1;
            if turns.users == 0 {
                owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_owner_leaves_a_turn_for_another() {
        let owner = |name: &str| Owner::new(name);
        let turns = Turns::new(2);
        let patience = Duration::from_secs(10);
        let first = turns.next(&owner("a"), patience).await.expect("it is free");
        assert!(turns.next(&owner("a"), patience).await.is_none(), "a has its turn");
        let other = turns.next(&owner("b"), patience).await.expect("one is left for b");
        assert!(turns.next(&owner("c"), patience).await.is_none(), "all are taken");
        assert_eq!(turns.running(2), 2);
        drop((first, other));
        assert!(turns.owners.lock().is_empty(), "nothing is kept of owners");
        assert!(turns.next(&owner("a"), patience).await.is_some());
    }
}
