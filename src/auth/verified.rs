//! What was verified already, by the token's hash: a signature is checked
//! once, not with each request.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use super::Identity;
use crate::clock::Timestamp;

/// How many tokens are kept at least, once so many were seen; twice as many at most.
const KEPT: usize = 5_000;

/// A token's hash: the token itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

type Generation = HashMap<TokenHash, (Identity, Timestamp)>;

/// Verified tokens, bounded: when the young generation is full, it becomes the
/// old one, and what was not asked for meanwhile is forgotten.
#[derive(Default)]
pub(super) struct Verified(Mutex<(Generation, Generation)>);

impl Verified {
    /// Who a token stands for, if that was found out and still holds.
    pub(super) fn get(&self, hash: TokenHash, now: Timestamp) -> Option<Identity> {
        let mut generations = self.lock();
        let (young, old) = &mut *generations;
        if let Some((identity, until)) = young.get(&hash) {
            return (*until > now).then(|| identity.clone());
        }
        let (identity, until) = old.remove(&hash).filter(|(_, until)| *until > now)?;
        Self::insert(&mut generations, hash, identity.clone(), until);
        Some(identity)
    }

    /// Keeps what was found out.
    pub(super) fn put(&self, hash: TokenHash, identity: Identity, until: Timestamp) {
        Self::insert(&mut self.lock(), hash, identity, until);
    }

    fn insert(
        (young, old): &mut (Generation, Generation),
        hash: TokenHash,
        identity: Identity,
        until: Timestamp,
    ) {
        if young.len() >= KEPT {
            *old = std::mem::take(young);
        }
        young.insert(hash, (identity, until));
    }

    fn lock(&self) -> MutexGuard<'_, (Generation, Generation)> {
        self.0.lock()
    }
}

impl std::fmt::Debug for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_for() {
        let verified = Verified::default();
        let (now, later) = (Timestamp::from_millis(0), Timestamp::from_millis(1));
        let hash = |n: usize| TokenHash::of(&n.to_string());
        for n in 0..4 * KEPT {
            verified.put(hash(n), Identity::local(), later);
            assert!(verified.get(hash(0), now).is_some(), "{n}");
        }
        let generations = verified.lock();
        assert!(generations.0.len() + generations.1.len() <= 2 * KEPT);
        drop(generations);
        assert!(verified.get(hash(1), now).is_none());
    }

    #[test]
    fn nothing_is_kept_past_its_end() {
        let verified = Verified::default();
        let end = Timestamp::from_millis(5);
        verified.put(TokenHash::of("a"), Identity::local(), end);
        assert!(verified.get(TokenHash::of("a"), Timestamp::from_millis(4)).is_some());
        assert!(verified.get(TokenHash::of("a"), end).is_none());
    }
}
