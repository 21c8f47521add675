//! [`ExpiringMap`]: a map whose entries expire.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    ops::RangeBounds,
};

use larder_runtime::clock::Timestamp;

/// A map whose entries may have an expiry. Each operation costs time logarithmic in the number of
/// entries.
///
/// The map has no clock and no task: an entry stays until [`pop_expired`](Self::pop_expired) or
/// [`remove`](Self::remove) takes it. Callers pop before they look, if they must not see an
/// expired entry, and wait for [`next_expiry`](Self::next_expiry).
#[derive(Debug)]
pub(crate) struct ExpiringMap<K, V> {
    /// The entries by key. Each has its expiry, which finds its place in `expiries`. A tree has the
    /// keys in order, and grows in small steps, where a hash table would move all entries at once,
    /// under the caller's lock.
    entries: BTreeMap<K, ExpiringEntry<V>>,

    /// The keys of exactly the entries that expire, the next one first, so that the next expiry is
    /// found without looking at all entries. Keys that expire at the same time are in their own
    /// order.
    expiries: BTreeSet<(Timestamp, K)>,
}

/// A value and its expiry. `None` is never.
#[derive(Debug)]
struct ExpiringEntry<V> {
    value: V,
    expires: Option<Timestamp>,
}

impl<K, V> Default for ExpiringMap<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), expiries: BTreeSet::new() }
    }
}

impl<K: Ord + Clone, V> ExpiringMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// The value of a key. A new value never expires, until it is renewed.
    pub(crate) fn get_or_insert_with(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let new = || ExpiringEntry { value: new(), expires: None };
        &mut self.entries.entry(key).or_insert_with(new).value
    }

    /// The entries whose keys are in a range, in the order of keys.
    pub(crate) fn range<Q: Ord + ?Sized>(
        &self,
        keys: impl RangeBounds<Q>,
    ) -> impl Iterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        self.entries.range(keys).map(|(key, entry)| (key, &entry.value))
    }

    /// Inserts or replaces a value, which expires at `expires`, or never. Returns the previous
    /// value.
    pub(crate) fn insert(
        &mut self,
        key: K,
        value: V,
        expires: impl Into<Option<Timestamp>>,
    ) -> Option<V> {
        let expires = expires.into();
        let previous = self.entries.insert(key.clone(), ExpiringEntry { value, expires });

        let before = previous.as_ref().and_then(|previous| previous.expires);
        self.move_expiry(key, before, expires);
        previous.map(|previous| previous.value)
    }

    /// Changes when an entry expires, if there is such an entry.
    pub(crate) fn renew<Q: Ord + ?Sized>(&mut self, key: &Q, expires: impl Into<Option<Timestamp>>)
    where
        K: Borrow<Q>,
    {
        let expires = expires.into();
        let Some(entry) = self.entries.get_mut(key) else { return };

        let before = std::mem::replace(&mut entry.expires, expires);
        if before == expires {
            return;
        }

        if let Some((key, _)) = self.entries.get_key_value(key) {
            let key = key.clone();
            self.move_expiry(key, before, expires);
        }
    }

    /// Keeps `expiries` as the entries are, after the expiry of a key has changed.
    fn move_expiry(&mut self, key: K, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before == after {
            return;
        }

        let key = match before {
            Some(before) => {
                let expiry = (before, key);
                self.expiries.remove(&expiry);
                expiry.1
            }
            None => key,
        };
        self.expiries.extend(after.map(|after| (after, key)));
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, entry) = self.entries.remove_entry(key)?;
        self.move_expiry(key, entry.expires, None);
        Some(entry.value)
    }

    /// The time at which the next entry expires.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(expires, _)| *expires)
    }

    /// The key that [`pop_expired`](Self::pop_expired) would take.
    pub(crate) fn next_expired(&self, now: Timestamp) -> Option<&K> {
        let (expires, key) = self.expiries.first()?;
        (*expires <= now).then_some(key)
    }

    /// Removes the entry that expired first, if one has expired at `now`. A call takes one entry,
    /// so the caller decides how much work it does at once.
    pub(crate) fn pop_expired(&mut self, now: Timestamp) -> Option<(K, V)> {
        self.next_expired(now)?;

        let (_, key) = self.expiries.pop_first()?;
        let entry = self.entries.remove(&key)?;
        Some((key, entry.value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn entries_expire_in_the_order_of_their_expiries() {
        let mut map = ExpiringMap::default();
        map.insert("late", 1, at(30));
        map.insert("early", 2, at(10));
        map.insert("never", 3, None);
        map.insert("also early", 4, at(10));

        assert_eq!(map.next_expiry(), Some(at(10)));
        assert_eq!(map.pop_expired(at(9)), None);
        assert_eq!(map.next_expired(at(10)), Some(&"also early"));
        assert_eq!(map.pop_expired(at(10)), Some(("also early", 4)));
        assert_eq!(map.pop_expired(at(10)), Some(("early", 2)));
        assert_eq!(map.pop_expired(at(10)), None);

        assert_eq!(map.pop_expired(at(u64::MAX)), Some(("late", 1)));
        assert_eq!(map.pop_expired(at(u64::MAX)), None);
        assert_eq!(map.next_expiry(), None);
        assert_eq!(map.get("never"), Some(&3));
    }

    #[test]
    fn a_replaced_or_renewed_entry_expires_once_at_its_latest_expiry() {
        let mut map = ExpiringMap::default();
        for n in 0..1_000 {
            map.insert("replaced", n, at(10 + n));
            map.renew("replaced", at(20 + n));
        }

        assert_eq!((map.len(), map.expiries.len()), (1, 1));
        assert_eq!(map.pop_expired(at(1_018)), None);
        assert_eq!(map.pop_expired(at(1_019)), Some(("replaced", 999)));
        assert!(map.is_empty() && map.expiries.is_empty());
    }

    #[test]
    fn an_expired_entry_is_found_until_it_is_popped() {
        let mut map = ExpiringMap::default();
        map.insert("a", 1, at(10));

        assert_eq!(map.get("a"), Some(&1));
        assert_eq!(map.pop_expired(at(11)), Some(("a", 1)));
        assert_eq!(map.get("a"), None);
    }

    #[test]
    fn a_key_that_is_missing_cannot_be_renewed() {
        let mut map = ExpiringMap::<&str, u8>::default();
        map.renew("a", at(10));
        assert_eq!((map.next_expiry(), map.len()), (None, 0));
    }

    /// An operation on a map.
    #[derive(Debug, Clone, Copy)]
    enum Operation {
        Insert(u8, u32, Option<u64>),
        GetOrInsert(u8, u32),
        Renew(u8, Option<u64>),
        Remove(u8),
        /// Pops at most so many entries that have expired at a time.
        Pop(u64, usize),
    }

    const KEYS: u8 = 6;

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let key = || 0..KEYS;
        let expires = || prop::option::weighted(0.8, 0..12_u64);
        let operation = prop_oneof![
            4 => (key(), any::<u32>(), expires())
                .prop_map(|(key, value, expires)| Operation::Insert(key, value, expires)),
            1 => (key(), any::<u32>()).prop_map(|(key, value)| Operation::GetOrInsert(key, value)),
            2 => (key(), expires()).prop_map(|(key, expires)| Operation::Renew(key, expires)),
            2 => key().prop_map(Operation::Remove),
            2 => (0..12_u64, 0..4_usize).prop_map(|(now, most)| Operation::Pop(now, most)),
        ];
        prop::collection::vec(operation, 0..60)
    }

    /// A map without an index: each operation looks at all entries.
    #[derive(Default)]
    struct NaiveMap(Vec<(u8, u32, Option<Timestamp>)>);

    impl NaiveMap {
        fn remove(&mut self, key: u8) -> Option<(u32, Option<Timestamp>)> {
            let found = self.0.iter().position(|(other, ..)| *other == key)?;
            let (_, value, expires) = self.0.remove(found);
            Some((value, expires))
        }

        fn next(&self) -> Option<(Timestamp, u8)> {
            self.0.iter().filter_map(|(key, _, expires)| Some(((*expires)?, *key))).min()
        }

        fn pop(&mut self, now: Timestamp) -> Option<(u8, u32)> {
            let (_, key) = self.next().filter(|(expires, _)| *expires <= now)?;
            self.remove(key).map(|(value, _)| (key, value))
        }

        /// Does an operation on both maps, and compares what it returns.
        fn apply(&mut self, map: &mut ExpiringMap<u8, u32>, operation: Operation) {
            match operation {
                Operation::Insert(key, value, expires) => {
                    let expires = expires.map(at);
                    let before = self.remove(key).map(|(value, _)| value);
                    self.0.push((key, value, expires));
                    assert_eq!(map.insert(key, value, expires), before);
                }
                Operation::GetOrInsert(key, value) => {
                    let (value, expires) = self.remove(key).unwrap_or((value, None));
                    self.0.push((key, value, expires));
                    assert_eq!(*map.get_or_insert_with(key, || value), value);
                }
                Operation::Renew(key, expires) => {
                    let expires = expires.map(at);
                    if let Some((value, _)) = self.remove(key) {
                        self.0.push((key, value, expires));
                    }
                    map.renew(&key, expires);
                }
                Operation::Remove(key) => {
                    assert_eq!(map.remove(&key), self.remove(key).map(|(value, _)| value));
                }
                Operation::Pop(now, most) => {
                    for _ in 0..most {
                        assert_eq!(map.pop_expired(at(now)), self.pop(at(now)));
                    }
                }
            }
        }

        fn assert_equals(&self, map: &ExpiringMap<u8, u32>) {
            let mut entries: Vec<_> = self.0.iter().map(|(key, value, _)| (key, value)).collect();
            entries.sort();

            assert_eq!(map.range(..).collect::<Vec<_>>(), entries);
            assert_eq!(map.len(), entries.len());
            for key in 0..KEYS {
                let value = entries.iter().find(|(other, _)| **other == key);
                assert_eq!(map.get(&key), value.map(|(_, value)| *value));
            }

            assert_eq!(map.next_expiry(), self.next().map(|(expires, _)| expires));
            let expiring = self.0.iter().filter(|(.., expires)| expires.is_some());
            assert_eq!(map.expiries.len(), expiring.count());
        }
    }

    proptest! {
        #[test]
        fn no_live_entry_is_lost_and_no_expired_one_stays(
            operations in operations(), end in 0..12_u64,
        ) {
            let mut map = ExpiringMap::default();
            let mut naive = NaiveMap::default();

            for operation in operations {
                naive.apply(&mut map, operation);
                naive.assert_equals(&map);
            }

            while let Some(popped) = naive.pop(at(end)) {
                prop_assert_eq!(map.pop_expired(at(end)), Some(popped));
            }
            prop_assert_eq!(map.pop_expired(at(end)), None);
            naive.assert_equals(&map);
        }
    }
}
