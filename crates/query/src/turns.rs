//! [`Turns`]: how many queries run at once. Owners take turns: an owner without a running query
//! comes first, and a query that has had its share of time ends where such an owner waits.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::pending,
    sync::Arc,
    time::Duration,
};

use larder_identity::Owner;
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// The turns of all owners.
#[derive(Debug)]
pub(super) struct Turns(Arc<Mutex<TurnState>>);

#[derive(Debug)]
struct TurnState {
    concurrent: usize,
    /// How long a query runs in any case.
    share: Duration,
    owners: HashMap<Owner, OwnerQueries>,
    /// The owners that may run another query and wait for it: the fewest running queries first,
    /// then in the order of arrival.
    order: BTreeSet<OwnerRank>,
    /// The queries that run, from the oldest to the newest.
    running: BTreeMap<u64, RunningQuery>,
    next_id: u64,
}

/// The queries of one owner that wait or run.
#[derive(Debug, Default)]
struct OwnerQueries {
    waiting: BTreeMap<u64, oneshot::Sender<Turn>>,
    running: usize,
    /// The owner's element of [`TurnState::order`].
    place: Option<OwnerRank>,
}

/// The rank of an owner that waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OwnerRank {
    running: usize,
    /// The query that waits longest.
    id: u64,
    owner: Owner,
}

#[derive(Debug)]
struct RunningQuery {
    /// When the query has had its share of time.
    share_ends: Instant,
    /// Cancelled when the query is to end for another owner.
    yields: CancellationToken,
}

/// The permission to run one query. It ends with the value.
#[derive(Debug)]
pub(super) struct Turn {
    state: Arc<Mutex<TurnState>>,
    owner: Owner,
    id: u64,
    yields: CancellationToken,
}

/// A query that waits. Dropping it removes the query.
struct Waiting {
    state: Arc<Mutex<TurnState>>,
    owner: Owner,
    id: u64,
    granted: oneshot::Receiver<Turn>,
}

impl Turns {
    pub(super) fn new(concurrent: usize, share: Duration) -> Self {
        Self(Arc::new(Mutex::new(TurnState {
            concurrent: concurrent.max(1),
            share,
            owners: HashMap::new(),
            order: BTreeSet::new(),
            running: BTreeMap::new(),
            next_id: 0,
        })))
    }

    /// Waits for a turn; `None` if it takes too long.
    pub(super) async fn next(&self, owner: &Owner, patience: Duration) -> Option<Turn> {
        let mut waiting = self.enter(owner);
        timeout(patience, waiting.turn()).await.ok().flatten()
    }

    /// How many queries run.
    pub(super) fn running(&self) -> usize {
        self.0.lock().running.len()
    }

    fn enter(&self, owner: &Owner) -> Waiting {
        let (sender, granted) = oneshot::channel();
        let mut state = self.0.lock();
        let id = state.next_id();
        state.owners.entry(owner.clone()).or_default().waiting.insert(id, sender);
        state.rank(owner);

        let refused = state.grant(&self.0);
        drop(state);
        drop(refused);
        Waiting { state: Arc::clone(&self.0), owner: owner.clone(), id, granted }
    }
}

impl Waiting {
    /// The turn, once it is granted. Meanwhile queries that have had their share end for it.
    async fn turn(&mut self) -> Option<Turn> {
        loop {
            let next_yield = self.state.lock().next_yield(&self.owner);
            let due = async {
                match next_yield {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };

            tokio::select! {
                biased;
                granted = &mut self.granted => return granted.ok(),
                () = due => self.state.lock().end_longest(&self.owner),
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(queries) = state.owners.get_mut(&self.owner) {
            queries.waiting.remove(&self.id);
        }
        state.rank(&self.owner);
    }
}

impl Turn {
    /// Waits until the query has to end, because it has had its share of time and another owner
    /// waits.
    pub(super) async fn has_to_end(&self) {
        self.yields.cancelled().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.running.remove(&self.id);
        if let Some(queries) = state.owners.get_mut(&self.owner) {
            queries.running -= 1;
        }
        state.rank(&self.owner);

        let refused = state.grant(&self.state);
        drop(state);
        drop(refused);
    }
}

impl TurnState {
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// One worker is left for others.
    fn per_owner(&self) -> usize {
        (self.concurrent - 1).max(1)
    }

    /// Puts an owner into the order, or removes the owner from it, by what waits and runs.
    fn rank(&mut self, owner: &Owner) {
        let per_owner = self.per_owner();
        let Some(queries) = self.owners.get_mut(owner) else { return };
        if let Some(place) = queries.place.take() {
            self.order.remove(&place);
        }

        let running = queries.running;
        match queries.waiting.first_key_value() {
            Some((&id, _)) if running < per_owner => {
                let place = OwnerRank { running, id, owner: owner.clone() };
                queries.place = Some(place.clone());
                self.order.insert(place);
            }
            None if running == 0 => {
                self.owners.remove(owner);
            }
            _ => {}
        }
    }

    /// Grants free turns in order. Returns the turns that nobody takes any more, which the caller
    /// drops without the lock.
    fn grant(&mut self, shared: &Arc<Mutex<Self>>) -> Vec<Turn> {
        let mut refused = Vec::new();

        while self.running.len() < self.concurrent
            && let Some(OwnerRank { id, owner, .. }) = self.order.first().cloned()
            && let Some(queries) = self.owners.get_mut(&owner)
            && let Some(sender) = queries.waiting.remove(&id)
        {
            queries.running += 1;
            let yields = CancellationToken::new();
            let share_ends = Instant::now() + self.share;
            self.running.insert(id, RunningQuery { share_ends, yields: yields.clone() });
            self.rank(&owner);

            let turn = Turn { state: Arc::clone(shared), owner, id, yields };
            refused.extend(sender.send(turn).err());
        }
        refused
    }

    /// When a query may have to end for this owner; `None` if the owner waits for nothing. While the
    /// owner runs a query itself, or as many queries end already as owners wait, that is when a query
    /// that begins now has had its share.
    fn next_yield(&self, owner: &Owner) -> Option<Instant> {
        if self.owners.get(owner)?.running > 0 {
            return Some(Instant::now() + self.share);
        }

        // The order has the owners without a running query first.
        let in_need = self.order.iter().take(self.concurrent);
        let in_need = in_need.take_while(|place| place.running == 0).count();
        let ending = self.running.values().filter(|query| query.yields.is_cancelled()).count();
        if ending >= in_need {
            return Some(Instant::now() + self.share);
        }

        self.longest().map(|query| query.share_ends)
    }

    /// Ends the query that runs longest, if it has had its share and has to end for this owner.
    fn end_longest(&self, owner: &Owner) {
        let is_due = self.next_yield(owner).is_some_and(|at| at <= Instant::now());
        if let Some(query) = self.longest().filter(|_| is_due) {
            query.yields.cancel();
        }
    }

    fn longest(&self) -> Option<&RunningQuery> {
        let goes_on = |query: &&RunningQuery| !query.yields.is_cancelled();
        self.running.values().filter(goes_on).min_by_key(|query| query.share_ends)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const SHARE: Duration = Duration::from_secs(2);
    const PATIENCE: Duration = Duration::from_secs(10);

    fn owner(name: &str) -> Owner {
        Owner::new(name)
    }

    /// Runs until the query has to end; how long that took.
    async fn endless(turns: &Turns, name: &str) -> Duration {
        let turn = turns.next(&owner(name), Duration::MAX).await.expect("it waits for ever");
        let began = Instant::now();
        turn.has_to_end().await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn one_owner_leaves_a_turn_for_another() {
        let turns = Turns::new(2, PATIENCE * 9);

        let first = turns.next(&owner("a"), PATIENCE).await.expect("it is free");
        assert!(turns.next(&owner("a"), PATIENCE).await.is_none(), "a has its turn");
        let other = turns.next(&owner("b"), PATIENCE).await.expect("one is left for b");
        assert!(turns.next(&owner("c"), PATIENCE).await.is_none(), "all are taken");
        assert_eq!(turns.running(), 2);

        drop((first, other));
        assert!(turns.0.lock().owners.is_empty(), "nothing is kept of owners");
        assert!(turns.0.lock().order.is_empty());
        assert!(turns.next(&owner("a"), PATIENCE).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn endless_queries_of_two_owners_delay_a_third_by_their_share_only() {
        let turns = Arc::new(Turns::new(2, SHARE));
        for name in ["a", "b"] {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                loop {
                    assert!(endless(&turns, name).await >= SHARE, "each has its share");
                }
            });
        }
        tokio::task::yield_now().await;

        for _ in 0..20 {
            let asked = Instant::now();
            let turn = turns.next(&owner("c"), PATIENCE).await.expect("one of the others ends");
            let waited = asked.elapsed();
            assert!(waited <= SHARE + Duration::from_millis(10), "{waited:?}");
            drop(turn);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_goes_on_where_nobody_else_waits() {
        let turns = Turns::new(2, SHARE);
        let turn = turns.next(&owner("a"), PATIENCE).await.expect("it is free");

        // A second query of the owner, and another owner for whom a worker is free.
        assert!(turns.next(&owner("a"), PATIENCE).await.is_none());
        drop(turns.next(&owner("b"), PATIENCE).await.expect("it is free"));

        assert!(turn.has_to_end().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_whose_query_has_ended_waits_as_others_do() {
        let turns = Arc::new(Turns::new(2, SHARE));
        let first = turns.next(&owner("a"), PATIENCE).await.expect("it is free");
        let other = turns.next(&owner("b"), PATIENCE).await.expect("it is free");

        let mut third = turns.enter(&owner("c"));
        let second = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.next(&owner("a"), PATIENCE).await.is_some() }
        });
        tokio::task::yield_now().await;
        drop(first);
        let _third = third.turn().await.expect("c came before the second query of a");

        let ends = tokio::time::timeout(PATIENCE, other.has_to_end());
        assert!(ends.await.is_ok(), "the query of b has had its share");
        drop(other);
        assert!(second.await.expect("no panic"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_query_ends_for_each_owner_that_waits() {
        let turns = Turns::new(3, SHARE);
        let running = [
            turns.next(&owner("a"), PATIENCE).await.expect("it is free"),
            turns.next(&owner("a"), PATIENCE).await.expect("it is free"),
            turns.next(&owner("b"), PATIENCE).await.expect("it is free"),
        ];

        let c = owner("c");
        let later = PATIENCE;
        let asking = turns.next(&c, later);
        assert!(asking.await.is_none(), "the others ignore it");

        let ending: Vec<_> =
            running.iter().map(|turn| turn.has_to_end().now_or_never().is_some()).collect();
        assert_eq!(ending, [true, false, false], "the longest one");
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_a_query_comes_before_an_earlier_one_with_some() {
        let turns = Arc::new(Turns::new(3, PATIENCE * 9));
        let first = turns.next(&owner("a"), PATIENCE).await.expect("it is free");
        let held = [
            turns.next(&owner("b"), PATIENCE).await.expect("it is free"),
            turns.next(&owner("b"), PATIENCE).await.expect("it is free"),
        ];

        let mut second = turns.enter(&owner("a"));
        let mut other = turns.enter(&owner("c"));
        drop(held);

        assert!(other.turn().now_or_never().flatten().is_some());
        assert!(second.turn().now_or_never().flatten().is_some());
        drop(first);
    }
}
