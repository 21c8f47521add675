//! [`Callers`]: what each caller has done since the start of this instance, by name. For operators, who
//! else see owners as hashes.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use larder_oauth::{Identity, Owner};
use larder_protocol::quote::shortened;
use parking_lot::Mutex;
use serde::Serialize;

use super::End;

/// Calls that end at the same time seldom wait for each other.
const SHARDS: usize = 16;
/// The most callers of a shard with numbers of their own. A further one takes the place of the
/// caller that calls least, whose numbers go to those of the others.
const MAX_PER_SHARD: usize = 512;

/// The callers that have been seen.
#[derive(Debug, Default)]
pub struct Callers {
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    callers: HashMap<Owner, Place>,
    /// The counts of all callers that have lost their place.
    others: CallerCounts,
}

/// The place of a caller with numbers of its own.
#[derive(Debug, Default)]
struct Place {
    counts: CallerCounts,
    /// The rank that the caller before had, which this one inherits: otherwise many callers with a
    /// call each would drive out one that calls often (Space-Saving; Metwally et al., 2005).
    inherited: u64,
}

impl Place {
    fn rank(&self) -> u64 {
        self.inherited + self.counts.calls
    }
}

/// The calls of one caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallerCounts {
    /// The name of the caller in the audit log, cut if it is long.
    pub name: String,
    /// The calls that have ended.
    pub calls: u64,
    /// The calls that ended with an error.
    pub errors: u64,
    /// The bytes of the parameters of these calls.
    pub received_bytes: u64,
    /// The bytes that these calls stored.
    pub stored_bytes: u64,
}

impl CallerCounts {
    fn named(caller: &Identity) -> Self {
        let name = shortened(&caller.principal().to_string()).into_owned();
        Self { name, ..Self::default() }
    }

    fn add(&mut self, end: End, received: u64, stored: u64) {
        self.calls += 1;
        self.errors += u64::from(end.is_error());
        self.received_bytes += received;
        self.stored_bytes += stored;
    }

    fn sum(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.received_bytes += other.received_bytes;
        self.stored_bytes += other.stored_bytes;
    }
}

impl Shard {
    /// The place of a caller, which is taken from the one that calls least if there is none left.
    fn place(&mut self, caller: &Identity) -> &mut Place {
        let owner = caller.owner();
        if !self.callers.contains_key(owner) {
            let inherited = if self.callers.len() < MAX_PER_SHARD { 0 } else { self.evict() };
            let place = Place { counts: CallerCounts::named(caller), inherited };
            self.callers.insert(owner.clone(), place);
        }
        self.callers.entry(owner.clone()).or_default()
    }

    /// Removes the caller of the lowest rank. Returns the rank.
    fn evict(&mut self) -> u64 {
        let lowest = self.callers.iter().min_by_key(|(_, place)| place.rank());
        let Some(owner) = lowest.map(|(owner, _)| owner.clone()) else { return 0 };
        let place = self.callers.remove(&owner).unwrap_or_default();
        self.others.sum(&place.counts);
        place.rank()
    }
}

impl Callers {
    fn shard(&self, owner: &Owner) -> &Mutex<Shard> {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        &self.shards[usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0)]
    }

    /// Counts a call that has ended.
    pub(super) fn ended(&self, caller: &Identity, end: End, received: u64, stored: u64) {
        let mut shard = self.shard(caller.owner()).lock();
        shard.place(caller).counts.add(end, received, stored);
    }

    /// Remembers the name of a caller whose calls are not counted, while there is room.
    pub(super) fn seen(&self, caller: &Identity) {
        let owner = caller.owner();
        let mut shard = self.shard(owner).lock();
        if shard.callers.len() < MAX_PER_SHARD {
            shard.place(caller);
        }
    }

    /// The name of an owner that has called this instance.
    pub fn name(&self, owner: &Owner) -> Option<String> {
        self.shard(owner).lock().callers.get(owner).map(|place| place.counts.name.clone())
    }

    /// The callers with the most calls, and what all others have done together.
    pub fn top(&self, most: usize) -> (Vec<CallerCounts>, CallerCounts) {
        let mut all = Vec::new();
        let mut others = CallerCounts::default();
        for shard in &self.shards {
            let shard = shard.lock();
            let counts = shard.callers.values().map(|place| &place.counts);
            all.extend(counts.filter(|counts| counts.calls > 0).cloned());
            others.sum(&shard.others);
        }

        all.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
        for counts in all.drain(most.min(all.len())..) {
            others.sum(&counts);
        }
        (all, others)
    }
}

#[cfg(test)]
mod tests {
    use larder_oauth::{Grant, Principal};

    use super::*;

    #[test]
    fn totals_agree_with_any_number_of_callers() {
        let callers = Callers::default();
        let of = |name: &str| {
            let principal = Principal::Static { name: name.into() };
            Identity::new(principal, Grant::All, None)
        };
        let many = 2 * SHARDS * MAX_PER_SHARD;
        for caller in 0..many {
            callers.ended(&of(&format!("caller {caller}")), End::Done, 2, 3);
        }
        for _ in 0..5 {
            callers.ended(&of("caller 0"), End::ToolError, 2, 0);
        }

        let (top, others) = callers.top(3);
        assert_eq!((top.len(), top[0].errors), (3, 5));
        // The first call is counted with the others if a later caller took the place meanwhile.
        let first = top[0].calls - 5;
        assert!(first <= 1, "{top:?}");
        assert_eq!((top[0].received_bytes, top[0].stored_bytes), (10 + 2 * first, 3 * first));
        let calls = top.iter().map(|counts| counts.calls).sum::<u64>() + others.calls;
        assert_eq!(calls, many as u64 + 5);
        assert!(callers.name(of("caller 0").owner()).is_some_and(|name| name.contains("caller 0")));
        assert_eq!(callers.name(&Owner::new("nobody")), None);
    }

    #[test]
    fn a_caller_that_comes_late_and_calls_often_has_numbers_of_its_own() {
        let callers = Callers::default();
        let of = |name: &str| {
            let principal = Principal::Static { name: name.into() };
            Identity::new(principal, Grant::All, None)
        };
        let many = 4 * SHARDS * MAX_PER_SHARD;
        for caller in 0..many {
            callers.ended(&of(&format!("caller {caller}")), End::Done, 1, 1);
            if caller >= many / 2 {
                callers.ended(&of("late"), End::Done, 1, 1);
            }
        }

        let (top, others) = callers.top(1);
        assert!(top[0].name.contains("late"), "{top:?}");
        // Between its first calls it may have lost its place.
        assert!(top[0].calls > many as u64 / 4, "{top:?}");
        assert_eq!(top[0].calls + others.calls, many as u64 * 3 / 2);
        assert!(callers.shards.iter().all(|shard| shard.lock().callers.len() <= MAX_PER_SHARD));

        callers.ended(&of(&"x".repeat(10_000)), End::Done, 1, 1);
        let (all, _) = callers.top(usize::MAX);
        assert!(all.iter().all(|counts| counts.name.chars().count() < 200));
    }
}
