//! A simulation of many owners over a store in memory: they write, read and delete resources, which
//! also expire, and a model predicts the answers and announcements of the store.
//!
//! All events depend only on the seed. Each owner writes about once in a simulated minute, for any
//! number of owners, so that costs at different numbers can be compared.

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

mod model;
mod numbers;
mod subscriber;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::FutureExt;

use larder_identity::Owner;
use larder_runtime::clock::{Clock, ManualClock};

use self::{
    model::{Announced, ChangedThing, Model, ResourceKey, SLOTS},
    numbers::{Numbers, mix},
    subscriber::Subscriber,
};
use crate::store::{
    ChangeQueue, Changed, Details, MemoryLimits, NextChanges, OwnerQuota, ResourceUri, Rewrite,
    Store, StoreError, StoreLimits,
};

/// The number of events after which the maintenance of the store runs.
const BETWEEN_MAINTENANCE: u64 = 256;

/// The number of owners to whom an eighth of all events goes.
const BUSY_OWNERS: u64 = 4;

/// The maximum size of content, in bytes.
const MAX_CONTENT: u64 = 4096;

const MINUTE: Duration = Duration::from_mins(1);

/// The longest time to live of a simulated resource.
pub const LONGEST_TTL: Duration = Duration::from_mins(3);

/// The limits of an owner, and the overhead of a resource.
#[derive(Debug, Clone, Copy)]
struct OwnerLimits {
    quota: OwnerQuota,
    /// The bytes that a resource counts beside its content.
    metadata: u32,
}

/// The numbers of events of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All events: writes, reads and deletions.
    pub events: u64,
    /// Writes that the quota did not allow.
    pub refused: u64,
    /// Resources that expired.
    pub expired: u64,
    /// Changes of resources.
    pub changes: u64,
    /// Subscribers who received the error that they missed changes.
    pub overflows: u64,
}

/// The simulated owners, their store, and the model of both.
#[derive(Debug)]
pub struct Simulation {
    seed: u64,
    clock: ManualClock,
    store: Store,
    numbers: Numbers,
    owners: u32,
    model: Model,
    subscribers: BTreeMap<u32, Subscriber>,
    queue: Arc<ChangeQueue>,
    /// Simulated time that is shorter than the unit of the clock, in nanoseconds.
    rest_of_time: u64,
    counts: Counts,
}

/// The name of a simulated owner: as long as a user's name, and not in the order of the numbers.
pub fn owner(number: u32) -> Owner {
    let mixed = mix(number.into());
    Owner::new(format!("user-{mixed:016x}{:016x}{number:011}", mix(mixed)))
}

fn uri(slot: u8) -> String {
    format!("sim://results/{slot}")
}

fn resource_uri(slot: u8) -> ResourceUri {
    ResourceUri::parse(&uri(slot)).expect("it is a URI")
}

fn text(size: u32) -> String {
    "0123456789abcde\n".chars().cycle().take(size as usize).collect()
}

impl Simulation {
    /// An empty store for `owners`, at least 16 of them. Every 64th owner, and each busy one, has a
    /// subscriber; at most 1,024 owners have.
    pub async fn new(seed: u64, owners: u32) -> Self {
        let quota = OwnerQuota { bytes: 16 << 10, resources: 3 };
        let clock = ManualClock::new();
        let limits = StoreLimits { revisions: 2, ..StoreLimits::default() };
        let memory = MemoryLimits { bytes: u64::MAX, per_owner: quota };
        let store = Store::memory(Arc::new(clock.clone()), memory, limits);

        // The store decides how many bytes metadata count: as many for all URIs here.
        let empty = store.create(&owner(0), resource_uri(0), "".into(), Details::default()).await;
        let metadata = empty.expect("it fits").counted_bytes();
        store.delete(&owner(0), &resource_uri(0)).await.expect("it can be deleted");
        let metadata = u32::try_from(metadata).expect("metadata are short");

        let subscriber = |number: u32| {
            let changes = store.feed().subscribe(&owner(number));
            (number, Subscriber::new(changes, number.is_multiple_of(128)))
        };
        let subscribers = (0..owners).filter(|n| n % 64 == 0 || u64::from(*n) < BUSY_OWNERS);

        Self {
            seed,
            numbers: Numbers::new(seed),
            owners,
            model: Model::new(owners, OwnerLimits { quota, metadata }),
            subscribers: subscribers.take(1024).map(subscriber).collect(),
            queue: store.feed().queue(),
            rest_of_time: 0,
            counts: Counts::default(),
            clock,
            store,
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The numbers of the events so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of live resources.
    pub fn resources(&self) -> u64 {
        self.model.resources
    }

    /// The bytes of memory that the simulation itself takes, without the store.
    pub fn memory(&self) -> u64 {
        self.model.memory()
    }

    /// Creates a resource for each owner.
    pub async fn fill(&mut self) {
        for owner in 0..self.owners {
            self.write((owner, 0), false).await;
            self.after_event().await;
        }
    }

    /// Runs a number of events of random owners.
    pub async fn run(&mut self, events: u64) {
        for _ in 0..events {
            let is_busy = self.numbers.below(8) == 0;
            let end = if is_busy { BUSY_OWNERS } else { self.owners.into() };
            let owner = u32::try_from(self.numbers.below(end)).expect("it is below the owners");

            let slot = u8::try_from(self.numbers.below(SLOTS as u64)).expect("it is a slot");

            let key = (owner, slot);
            match self.numbers.below(100) {
                0..45 => self.write(key, false).await,
                45..55 => self.write(key, true).await,
                55..60 => self.extend(key).await,
                60..70 => self.delete(key).await,
                _ => self.read(key).await,
            }

            self.after_event().await;
        }
    }

    /// Lets time pass, without the maintenance of the store.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Runs the maintenance of the store until nothing is left to remove, and checks the changes that
    /// the consumer of coalesced changes receives.
    pub async fn settle(&mut self) {
        let now = self.clock.now().as_millis();
        let mut due = 0;
        while let Some((owner, change)) = self.model.expire_next(now) {
            due += 1;
            self.changed(owner, change);
        }

        let store = self.store.clone();
        let removed = async {
            // More turns than the maintenance needs, which removes many resources in each.
            for _ in 0..due / 64 + 4 {
                tokio::task::yield_now().await;
            }
        };

        tokio::select! {
            biased;
            () = store.maintain() => unreachable!("maintenance does not end"),
            () = removed => {}
        }

        while let Some(NextChanges::Of(turn)) = self.queue.next().now_or_never() {
            for change in &turn.changes {
                self.check_thing(&turn.owner, &change.changed);
            }
        }

        assert!(self.model.changed.is_empty(), "a change was not queued; {}", self.at());
    }

    /// Settles, and checks the totals, the received changes of subscribers, and `sample` owners.
    pub async fn check(&mut self, sample: u32) {
        self.settle().await;
        let total = self.store.usage().await.expect("it is counted");
        let expected = (self.model.resources, self.model.bytes, 0);
        assert_eq!((total.resources, total.bytes, total.reserved), expected, "{}", self.at());

        let at = self.at();
        for subscriber in self.subscribers.values_mut().filter(|subscriber| !subscriber.is_slow) {
            self.counts.overflows += u64::from(subscriber.check(uri, &at));
        }

        for n in 0..sample.min(self.owners) {
            let number = if sample < self.owners {
                u32::try_from(self.numbers.below(self.owners.into())).expect("it is an owner")
            } else {
                n
            };
            self.check_owner(number).await;
        }
    }

    /// Lets everything expire and checks that nothing is left, that slow subscribers received all
    /// changes, and that `sample` owners have all of their quota.
    pub async fn finish(&mut self, sample: u32) {
        self.pass(LONGEST_TTL);
        self.check(sample).await;
        assert_eq!(self.model.resources, 0, "{}", self.at());
        let left = self.store.owners(None, 1).await.expect("they are listed");
        assert!(left.owners.is_empty() && left.next.is_none(), "{left:?}; {}", self.at());

        let at = self.at();
        for subscriber in self.subscribers.values_mut() {
            self.counts.overflows += u64::from(subscriber.check(uri, &at));
        }

        let OwnerLimits { quota, metadata } = self.limits();
        let most = u32::try_from(quota.bytes).expect("quotas are small here") - metadata;
        for number in 0..sample.min(self.owners) {
            let owner = owner(number);
            let content = text(most);
            let all =
                self.store.create(&owner, resource_uri(0), content.into(), Details::default());
            let all = all.await.unwrap_or_else(|error| panic!("{error}; {at}"));

            assert_eq!(all.counted_bytes(), quota.bytes, "{at}");
        }
    }

    /// Compares the usage and the listing of an owner with the model.
    async fn check_owner(&self, number: u32) {
        let owner = owner(number);
        let quota = self.limits().quota;

        let usage = self.store.usage_of(&owner).await.expect("it is counted");
        let live = self.model.live(number);
        let expected = (live.len() as u64, self.model.used(number));
        assert_eq!((usage.resources, usage.bytes), expected, "owner {number}; {}", self.at());
        let is_within = usage.bytes <= quota.bytes && usage.resources <= quota.resources;
        assert!(is_within, "owner {number}: {usage:?}; {}", self.at());

        let page = self.store.list(&owner, "", None, SLOTS).await.expect("they are listed");
        let listed: Vec<_> = page.entries.iter().map(|entry| entry.uri.to_string()).collect();
        let expected: Vec<_> = live.into_iter().map(uri).collect();
        assert_eq!(listed, expected, "owner {number}; {}", self.at());
    }

    /// Marks a queued change as received.
    fn check_thing(&mut self, of: &Owner, changed: &Changed) {
        // The name of an owner ends with its number.
        let number = of.as_str().get(37..).and_then(|number| number.parse().ok());
        let slot = match changed {
            Changed::List => None,
            Changed::Resource(uri) => uri.as_str().bytes().last().map(|digit| digit - b'0'),
        };

        let thing: Option<ChangedThing> = number.map(|number| (number, slot));
        let was_expected = thing.is_some_and(|thing| self.model.changed.remove(&thing));
        assert!(was_expected, "{changed:?} of {of} did not change; {}", self.at());
    }

    /// Writes a resource of random size and life, and compares the outcome with the model.
    async fn write(&mut self, key @ (number, slot): ResourceKey, is_update: bool) {
        let now = self.now_of(number);
        let size = u32::try_from(1 + self.numbers.below(MAX_CONTENT)).expect("it is small");
        let millis = u64::try_from(LONGEST_TTL.as_millis()).expect("it is short");
        let ttl = 1 + self.numbers.below(millis);
        let ttl = (!is_update || self.numbers.below(2) == 0).then_some(ttl);
        let details = Details { ttl: ttl.map(Duration::from_millis), ..Details::default() };

        let owner = owner(number);
        let uri = resource_uri(slot);
        let content = text(size).into();

        let was_live = self.model.is_live(key);
        let written = if is_update {
            self.store.update(&owner, uri, content, details).await
        } else {
            self.store.create(&owner, uri, content, details).await
        };

        if is_update && !was_live {
            let error = written.expect_err("an update needs a live resource");
            assert!(error.is_not_found(), "{error}; {}", self.at());
            return;
        }

        match (self.model.write(key, size, ttl.map(|ttl| now + ttl)), written) {
            (Some(change), Ok(entry)) => {
                let counted = u64::from(size + self.limits().metadata);
                assert_eq!(entry.counted_bytes(), counted, "{}", self.at());
                self.changed(number, change);
            }
            (None, Err(StoreError::Full(_))) => self.counts.refused += 1,
            (expected, written) => {
                let written = written.map(|entry| entry.counted_bytes());
                panic!("{expected:?} expected of {key:?}, but {written:?}; {}", self.at());
            }
        }
    }

    /// Writes a new expiry of a resource, whose content stays, and compares the outcome with the
    /// model: the revision counts its content like any other.
    async fn extend(&mut self, key @ (number, slot): ResourceKey) {
        let now = self.now_of(number);
        let millis = u64::try_from(LONGEST_TTL.as_millis()).expect("it is short");
        let ttl = 1 + self.numbers.below(millis);
        let details = Details { ttl: Some(Duration::from_millis(ttl)), ..Details::default() };

        let owner = owner(number);
        let uri = resource_uri(slot);
        let was_live = self.model.is_live(key);
        let size = self.model.size(key);
        let written = self.store.rewrite(&owner, uri.clone(), Rewrite::default(), details).await;

        if !was_live {
            let error = written.expect_err("a rewrite needs a live resource");
            assert!(error.is_not_found(), "{error}; {}", self.at());
            return;
        }

        match (self.model.write(key, size, Some(now + ttl)), written) {
            (Some(change), Ok(_)) => {
                self.changed(number, change);
                let found = self.store.get(&owner, &uri).await.expect("it is live");
                let content = found.bytes().await.expect("it can be read");
                assert_eq!(content, text(size).as_bytes(), "{}", self.at());
            }
            (None, Err(StoreError::Full(_))) => self.counts.refused += 1,
            (expected, written) => {
                let written = written.map(|entry| entry.counted_bytes());
                panic!("{expected:?} expected of {key:?}, but {written:?}; {}", self.at());
            }
        }
    }

    /// Deletes a resource, and compares the outcome with the model.
    async fn delete(&mut self, key @ (number, slot): ResourceKey) {
        self.now_of(number);
        let deleted = self.store.delete(&owner(number), &resource_uri(slot)).await;

        let expected = self.model.delete(key);
        let deleted = deleted.expect("it can be deleted");
        assert_eq!(deleted, expected.is_some(), "{key:?}; {}", self.at());

        if let Some(change) = expected {
            self.changed(number, change);
        }
    }

    /// Reads a resource, and compares the outcome with the model.
    async fn read(&mut self, key @ (number, slot): ResourceKey) {
        self.now_of(number);

        match self.store.get(&owner(number), &resource_uri(slot)).await {
            Ok(_) => assert!(self.model.is_live(key), "{key:?} is gone; {}", self.at()),
            Err(error) => {
                assert!(error.is_not_found(), "{error}; {}", self.at());
                assert!(!self.model.is_live(key), "{key:?} is live; {}", self.at());
            }
        }
    }

    /// The time in milliseconds. The resources of the owner that have expired at this time are
    /// removed from the model.
    fn now_of(&mut self, owner: u32) -> u64 {
        let now = self.clock.now().as_millis();
        for change in self.model.expire_owner(owner, now) {
            self.changed(owner, change);
        }

        now
    }

    /// Counts a change, and tells the subscriber of its owner to expect it.
    fn changed(&mut self, owner: u32, change: Announced) {
        self.counts.changes += 1;
        self.counts.expired += u64::from(change.0 == crate::store::ChangeKind::Expired);

        if let Some(subscriber) = self.subscribers.get_mut(&owner) {
            subscriber.expect(change);
        }
    }

    /// Moves the clock after an event, and runs the maintenance when it is due.
    async fn after_event(&mut self) {
        self.counts.events += 1;

        let each = u64::try_from(MINUTE.as_nanos()).expect("it is short") / u64::from(self.owners);
        self.rest_of_time += each;
        let millis = self.rest_of_time / 1_000_000;
        self.rest_of_time %= 1_000_000;
        self.clock.advance(Duration::from_millis(millis));

        if self.counts.events.is_multiple_of(BETWEEN_MAINTENANCE) {
            self.settle().await;
        }
    }

    fn limits(&self) -> OwnerLimits {
        self.model.limits
    }

    /// The place of a failed check, with which it can be repeated.
    fn at(&self) -> String {
        format!(
            "with seed {} and {} owners, after {} events",
            self.seed, self.owners, self.counts.events
        )
    }
}
