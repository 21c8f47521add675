//! [`MessageBudget`]: bounds the memory for what all upstreams send, and leaves some of it to each
//! owner and each upstream.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use larder_oauth::Owner;
use larder_runtime::held::Counted;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The size up to which messages do not count while they arrive. Calls are limited, so these are,
/// too.
pub(super) const FREE_BYTES: usize = 16 << 10;
/// About how much memory a small JSON value takes once it is parsed.
pub(super) const VALUE_BYTES: usize = 96;

/// How long a message waits for others to end. It may hold room itself, so it must not wait
/// for long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much is taken at a time while a message grows.
const STEP: usize = 64 << 10;
/// Enough for two messages of the default size, in a server with 1 GiB.
const DEFAULT_BYTES: usize = 128 << 20;
/// An owner holds at most so many times what is free, over all upstreams. Whoever takes all it can
/// leaves a third of what it finds to the next one.
const OWNER_SHARE: usize = 2;
/// An owner holds at most so many times what is free at one upstream, so that a slow upstream
/// leaves some of the owner's memory to the others.
const UPSTREAM_SHARE: usize = 1;

/// The memory for messages that are received or in use, and for lists that are kept.
pub(super) struct MessageBudget {
    max: AtomicUsize,
    used: Mutex<Used>,
    freed: Notify,
}

/// The payer of memory: an owner at an upstream. Without an owner, it is the memory of the
/// upstream, for its lists and for what belongs to no call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Payer {
    pub(super) owner: Option<Owner>,
    pub(super) upstream: Arc<str>,
}

/// How many bytes are taken. Only holders of bytes have an entry.
#[derive(Default)]
struct Used {
    total: usize,
    by_owner: HashMap<Option<Owner>, usize>,
    by_payer: HashMap<Payer, usize>,
}

/// The bytes that a message or an item takes. Dropping it gives them back.
#[derive(Default)]
pub(super) struct Charge {
    /// `None` if it does not count.
    account: Option<Account>,
    bytes: usize,
}

#[derive(Clone)]
struct Account {
    budget: Arc<MessageBudget>,
    payer: Payer,
    /// Whether it may wait for room.
    may_wait: bool,
}

/// The owner, or the upstream, has taken its share.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Default for MessageBudget {
    fn default() -> Self {
        let max = AtomicUsize::new(DEFAULT_BYTES);
        Self { max, used: Mutex::default(), freed: Notify::new() }
    }
}

impl MessageBudget {
    /// Changes the limit for what is received from now on.
    pub(super) fn set_max(&self, bytes: usize) {
        self.max.store(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// The limit.
    pub(super) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// How much is taken.
    pub(super) fn used(&self) -> usize {
        self.used.lock().total
    }

    /// An empty charge of this payer.
    pub(super) fn charge(self: &Arc<Self>, payer: Payer) -> Charge {
        let account = Account { budget: Arc::clone(self), payer, may_wait: true };
        Charge { account: Some(account), bytes: 0 }
    }

    /// Takes more, if there is room for it in the payer's share.
    fn try_grow(&self, payer: &Payer, held: &mut usize, bytes: usize) -> bool {
        let mut used = self.used.lock();
        let wanted = bytes.min(used.largest(self.max()));
        let more = wanted.saturating_sub(*held);
        let fits = more == 0 || used.fits(payer, more, self.max());

        if fits {
            used.add(payer, more);
            *held += more;
        }
        fits
    }
}

impl Used {
    /// The most that one message counts: all that its payer may have while nobody else calls. A
    /// larger message is received nevertheless, because a setting of its upstream bounds it.
    fn largest(&self, max: usize) -> usize {
        let kept = self.by_owner.get(&None).copied().unwrap_or_default();
        let largest = max.saturating_sub(kept) * UPSTREAM_SHARE / (UPSTREAM_SHARE + 1);

        // Lists may take all of a limit that was lowered. A message must not be free then.
        largest.max(STEP)
    }

    fn fits(&self, payer: &Payer, more: usize, max: usize) -> bool {
        let Some(free) = max.checked_sub(self.total + more) else { return false };
        let owner = self.by_owner.get(&payer.owner).copied().unwrap_or_default() + more;
        let pair = self.by_payer.get(payer).copied().unwrap_or_default() + more;
        // Upstreams are no owner together: the bound of each leaves memory to the others.
        let fits_owner = payer.owner.is_none() || owner <= OWNER_SHARE * free;

        fits_owner && pair <= UPSTREAM_SHARE * free
    }

    fn add(&mut self, payer: &Payer, bytes: usize) {
        if bytes > 0 {
            self.total += bytes;
            *self.by_owner.entry(payer.owner.clone()).or_default() += bytes;
            *self.by_payer.entry(payer.clone()).or_default() += bytes;
        }
    }

    fn remove(&mut self, payer: &Payer, bytes: usize) {
        self.total -= bytes;
        take(&mut self.by_owner, &payer.owner, bytes);
        take(&mut self.by_payer, payer, bytes);
    }
}

/// Takes bytes from an entry, and removes an entry that has none left.
fn take<K: Eq + Hash>(entries: &mut HashMap<K, usize>, key: &K, bytes: usize) {
    if let Some(held) = entries.get_mut(key) {
        *held -= bytes;
        if *held == 0 {
            entries.remove(key);
        }
    }
}

impl Charge {
    /// The charge, which never waits for room.
    pub(super) fn at_once(mut self) -> Self {
        if let Some(account) = &mut self.account {
            account.may_wait = false;
        }
        self
    }

    /// Takes room for a message of so many bytes. Waits for other messages, but not for long.
    ///
    /// # Errors
    /// [`NoRoom`]. It keeps what it has.
    pub(super) async fn cover(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= FREE_BYTES {
            return Ok(());
        }
        self.cover_all(bytes.next_multiple_of(STEP)).await
    }

    /// Takes room for so many bytes, also for few. Waits as [`Charge::cover`] does.
    ///
    /// # Errors
    /// [`NoRoom`]. It keeps what it has.
    pub(super) async fn cover_all(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let Some(Account { budget, payer, may_wait }) = &self.account else { return Ok(()) };
        let held = &mut self.bytes;
        if bytes <= *held || budget.try_grow(payer, held, bytes) {
            return Ok(());
        }
        if !may_wait {
            return Err(NoRoom);
        }

        let room = async {
            loop {
                let mut freed = std::pin::pin!(budget.freed.notified());
                // Registers before the check, so that no notification is missed.
                freed.as_mut().enable();
                if budget.try_grow(payer, held, bytes) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(PATIENCE, room).await.map_err(|_| NoRoom)
    }

    /// Takes room for so many bytes at once, also for few.
    ///
    /// # Errors
    /// [`NoRoom`]. It keeps what it has.
    pub(super) fn try_cover_all(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let Some(Account { budget, payer, .. }) = &self.account else { return Ok(()) };
        let fits = bytes <= self.bytes || budget.try_grow(payer, &mut self.bytes, bytes);
        fits.then_some(()).ok_or(NoRoom)
    }

    /// Gives a part of its bytes away, or all that it has.
    pub(super) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { account: self.account.clone(), bytes }
    }

    /// Takes over the bytes of another part of the message.
    pub(super) fn add(&mut self, mut other: Self) {
        let Some(own) = &self.account else {
            *self = other;
            return;
        };

        if let Some(Account { payer, .. }) = &other.account
            && *payer != own.payer
        {
            other.pay_as(own.payer.clone());
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Counts the bytes as those of another payer, also beyond its share: they have arrived.
    pub(super) fn pay_as(&mut self, payer: Payer) {
        let Some(account) = &mut self.account else { return };
        if account.payer == payer {
            return;
        }

        let mut used = account.budget.used.lock();
        used.remove(&account.payer, self.bytes);
        used.add(&payer, self.bytes);
        drop(used);
        account.payer = payer;
        account.budget.freed.notify_waiters();
    }

    /// Whether it takes anything.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Counted for Charge {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn shrink(&mut self, bytes: usize) {
        let kept = if bytes <= FREE_BYTES { 0 } else { bytes.next_multiple_of(STEP) };
        drop(self.split(self.bytes.saturating_sub(kept)));
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(Account { budget, payer, .. }) =
            self.account.as_ref().filter(|_| self.bytes > 0)
        {
            budget.used.lock().remove(payer, self.bytes);
            budget.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    pub(crate) fn of(max: usize) -> Arc<MessageBudget> {
        let budget = Arc::new(MessageBudget::default());
        budget.set_max(max);
        budget
    }

    pub(crate) fn payer(owner: &str, upstream: &str) -> Payer {
        Payer { owner: Some(Owner::new(owner)), upstream: upstream.into() }
    }

    fn is_unused(budget: &MessageBudget) -> bool {
        let used = budget.used.lock();
        used.total == 0 && used.by_owner.is_empty() && used.by_payer.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_another_and_fails_if_that_stays() {
        let budget = of(8 * STEP);
        let charge = || budget.charge(payer("ana", "fs"));
        let mut first = charge();
        let mut second = charge();
        first.cover(3 * STEP).await.unwrap();
        second.cover(STEP).await.unwrap();
        assert!(second.cover(2 * STEP).await.is_err());

        let waiting = tokio::spawn(async move {
            second.cover(2 * STEP).await.unwrap();
            second
        });
        tokio::task::yield_now().await;
        drop(first);
        let mut second = waiting.await.unwrap();

        // A message that is larger than the share is received alone.
        second.cover(99 * STEP).await.unwrap();
        assert_eq!(budget.used.lock().total, 4 * STEP);
        assert!(charge().cover(FREE_BYTES).await.is_ok(), "small ones do not count");

        let mut joined = budget.charge(payer("bob", "fs"));
        joined.add(second);
        assert_eq!(budget.used.lock().by_owner[&Some(Owner::new("bob"))], 4 * STEP);
        drop(joined);
        assert!(is_unused(&budget));
    }

    #[tokio::test(start_paused = true)]
    async fn a_greater_limit_lets_a_message_go_on() {
        let budget = of(2 * STEP);
        let mut first = budget.charge(payer("ana", "fs"));
        first.cover(STEP).await.unwrap();

        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.charge(payer("ana", "fs")).cover(STEP).await.is_ok() }
        });

        tokio::task::yield_now().await;
        budget.set_max(4 * STEP);
        assert!(waiting.await.unwrap());
    }

    /// Takes pieces until no further one fits; the bytes that were taken.
    fn take_all(budget: &Arc<MessageBudget>, payer: &Payer, piece: usize) -> (Vec<Charge>, usize) {
        let mut taken = Vec::new();
        loop {
            let mut charge = budget.charge(payer.clone());
            if charge.try_cover_all(piece).is_err() {
                let bytes = taken.len() * piece;
                return (taken, bytes);
            }
            taken.push(charge);
        }
    }

    #[test]
    fn each_upstream_leaves_memory_for_the_lists_of_others() {
        let budget = of(32 << 20);
        let mut lists = Vec::new();

        for number in 0..5 {
            let free = budget.max() - budget.used();
            let payer = Payer { owner: None, upstream: format!("greedy {number}").into() };
            let (taken, bytes) = take_all(&budget, &payer, 1 << 10);
            assert!(bytes > STEP && bytes <= free / 2, "{number}: {bytes} of {free}");
            lists.push(taken);
        }
    }

    #[test]
    fn no_message_is_free_where_lists_take_all_of_a_lowered_limit() {
        let budget = of(32 << 20);
        let mut list = budget.charge(Payer { owner: None, upstream: "fs".into() });
        list.try_cover_all(8 << 20).expect("it is half of what is free at most");

        budget.set_max(4 << 20);
        let mut answer = budget.charge(payer("ana", "fs"));
        assert!(answer.try_cover_all(1 << 20).is_err());
    }

    #[test]
    fn whoever_takes_all_it_can_leaves_a_share_to_the_next() {
        const MIB: usize = 1 << 20;
        let budget = of(32 * MIB);

        let mut greedy = Vec::new();
        for upstream in ["slow", "other"] {
            greedy.push(take_all(&budget, &payer("mallory", upstream), 1 << 10));
        }
        // A single upstream takes at most half, and all upstreams of one owner take two thirds.
        assert_eq!(greedy[0].1, 16 * MIB);
        let all: usize = greedy.iter().map(|(_, bytes)| bytes).sum();
        assert!(greedy[1].1 > 5 * MIB && all <= 32 * MIB * 2 / 3, "{all}");

        // Another owner has a share at any upstream, and so has an upstream for its lists.
        for next in [payer("ana", "healthy"), payer("ana", "slow")] {
            let mut answer = budget.charge(next);
            answer.try_cover_all(4 * MIB).expect("its own share is free");
        }

        let mut list = budget.charge(Payer { owner: None, upstream: "healthy".into() });
        list.try_cover_all(4 * MIB).expect("its own share is free");

        // Each further owner leaves at least half of the free memory.
        for number in 0..5 {
            let free = 32 * MIB - budget.used();
            let payer = payer(&format!("mallory {number}"), "slow");
            let (taken, bytes) = take_all(&budget, &payer, 1 << 10);
            assert!(bytes > STEP && bytes <= free / 2, "{number}: {bytes} of {free}");
            greedy.push((taken, bytes));
        }

        drop((greedy, list));
        assert!(is_unused(&budget));
    }
}
