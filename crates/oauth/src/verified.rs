//! A cache of verified tokens by their hash, so that a token's signature is
//! checked once and not with each request.

use larder_runtime::clock::Timestamp;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use super::Identity;

/// How many tokens are cached.
const CAPACITY: usize = 10_000;

/// The SHA-256 of a token. The token itself is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(super) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

/// The identities of verified tokens, each with the end of its trust.
pub(super) struct VerifiedTokens(Cache<TokenHash, (Identity, Timestamp)>);

impl VerifiedTokens {
    /// The identity of a token that was verified, and until when it is trusted.
    pub(super) fn get(&self, hash: TokenHash, now: Timestamp) -> Option<(Identity, Timestamp)> {
        let (identity, until) = self.0.get(&hash)?;
        if until > now {
            return Some((identity, until));
        }
        self.0.remove_if(&hash, |(_, until)| *until <= now);
        None
    }

    pub(super) fn insert(&self, hash: TokenHash, identity: Identity, until: Timestamp) {
        self.0.insert(hash, (identity, until));
    }
}

impl Default for VerifiedTokens {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl std::fmt::Debug for VerifiedTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifiedTokens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_a_token_in_use() {
        let verified = VerifiedTokens::default();
        let now = Timestamp::from_millis(0);
        let later = Timestamp::from_millis(1);
        let hash = |n: usize| TokenHash::new(&n.to_string());

        for n in 0..4 * CAPACITY {
            verified.insert(hash(n), Identity::local(), later);
            assert!(verified.get(hash(0), now).is_some(), "{n}");
        }

        // Each shard of the cache rounds its capacity up.
        assert!(verified.0.len() <= CAPACITY + CAPACITY / 10, "{}", verified.0.len());
    }

    #[test]
    fn an_expired_token_is_neither_found_nor_stored() {
        let verified = VerifiedTokens::default();
        let end = Timestamp::from_millis(5);
        verified.insert(TokenHash::new("a"), Identity::local(), end);

        assert!(verified.get(TokenHash::new("a"), Timestamp::from_millis(4)).is_some());
        assert!(verified.get(TokenHash::new("a"), end).is_none());
        assert_eq!(verified.0.len(), 0);
    }
}
