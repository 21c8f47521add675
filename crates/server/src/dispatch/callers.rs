//! [`Callers`]: what each caller has done since the start of this instance, by name. For operators, who
//! else see owners as hashes.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use larder_oauth::{Identity, Owner};
use parking_lot::Mutex;
use serde::Serialize;

use super::End;

/// Calls that end at the same time seldom wait for each other.
const SHARDS: usize = 16;
/// The most callers of a shard with numbers of their own. Later ones are counted together.
const MAX_PER_SHARD: usize = 512;

/// The callers that have been seen.
#[derive(Debug, Default)]
pub struct Callers {
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    callers: HashMap<Owner, CallerCounts>,
    /// Of all callers beyond [`MAX_PER_SHARD`].
    others: CallerCounts,
}

/// What a caller has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallerCounts {
    /// As the audit log names them.
    pub name: String,
    /// The calls that have ended.
    pub calls: u64,
    /// Those of them that ended with an error.
    pub errors: u64,
    /// The bytes of the parameters of these calls.
    pub received_bytes: u64,
    /// The bytes that they stored.
    pub stored_bytes: u64,
}

impl CallerCounts {
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

impl Callers {
    fn shard(&self, owner: &Owner) -> &Mutex<Shard> {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        &self.shards[usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0)]
    }

    /// Counts a call that has ended.
    pub(super) fn ended(&self, caller: &Identity, end: End, received: u64, stored: u64) {
        let owner = caller.owner();
        let mut shard = self.shard(owner).lock();

        if let Some(counts) = shard.callers.get_mut(owner) {
            counts.add(end, received, stored);
        } else if shard.callers.len() < MAX_PER_SHARD {
            let mut counts =
                CallerCounts { name: caller.principal().to_string(), ..CallerCounts::default() };
            counts.add(end, received, stored);
            shard.callers.insert(owner.clone(), counts);
        } else {
            shard.others.add(end, received, stored);
        }
    }

    /// Remembers the name of a caller whose calls are not counted, while there is room.
    pub(super) fn seen(&self, caller: &Identity) {
        let owner = caller.owner();
        let mut shard = self.shard(owner).lock();
        if !shard.callers.contains_key(owner) && shard.callers.len() < MAX_PER_SHARD {
            let name = caller.principal().to_string();
            shard.callers.insert(owner.clone(), CallerCounts { name, ..CallerCounts::default() });
        }
    }

    /// The name of an owner that has called this instance.
    pub fn name(&self, owner: &Owner) -> Option<String> {
        self.shard(owner).lock().callers.get(owner).map(|counts| counts.name.clone())
    }

    /// The callers with the most calls, and what all others have done together.
    pub fn top(&self, most: usize) -> (Vec<CallerCounts>, CallerCounts) {
        let mut all = Vec::new();
        let mut others = CallerCounts::default();
        for shard in &self.shards {
            let shard = shard.lock();
            all.extend(shard.callers.values().filter(|counts| counts.calls > 0).cloned());
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
        assert_eq!((top.len(), top[0].calls, top[0].errors), (3, 6, 5));
        assert_eq!((top[0].received_bytes, top[0].stored_bytes), (12, 3));
        let calls = top.iter().map(|counts| counts.calls).sum::<u64>() + others.calls;
        assert_eq!(calls, many as u64 + 5);
        assert!(callers.name(of("caller 0").owner()).is_some_and(|name| name.contains("caller 0")));
        assert_eq!(callers.name(&Owner::new("nobody")), None);
    }
}
