//! Tokens listed in the configuration by their hash, for small deployments
//! without an authorization server.

use std::fmt;

use larder_runtime::clock::Timestamp;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::{Grant, Identity, Principal, Scopes};

/// A token, identified by its hash.
///
/// SHA-256 rather than a slow password hash: 256 random bits cannot be guessed,
/// and a slow hash would let anybody overload the server with tokens.
#[derive(Clone)]
pub struct StaticToken {
    /// The principal's name, to which resources and sessions are bound. Several tokens may
    /// have it, so that one can replace another.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The granted scopes.
    pub scopes: Scopes,
    /// The principal's groups.
    pub groups: Vec<String>,
    /// When the token is no longer accepted.
    pub expires: Option<Timestamp>,
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, scopes, .. } = self;
        f.debug_struct("StaticToken").field("name", name).field("scopes", scopes).finish()
    }
}

/// All tokens with their identities.
#[derive(Debug)]
pub(super) struct StaticTokens(Vec<(StaticToken, Identity)>);

impl StaticTokens {
    /// `grant` expands the scopes of a token.
    pub(super) fn new(tokens: Vec<StaticToken>, grant: impl Fn(Scopes) -> Grant) -> Self {
        let identified = tokens.into_iter().map(|token| {
            let principal = Principal::Static { name: token.name.as_str().into() };
            let identity = Identity::new(principal, grant(token.scopes.clone()), token.expires);
            let identity = identity.with_groups(token.groups.clone());
            (token, identity)
        });
        Self(identified.collect())
    }

    /// The identity of a token. Compares in constant time.
    pub(super) fn find(&self, token: &str) -> Option<&Identity> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut found = Choice::from(0);
        let mut position = 0_u64;

        for (index, (known, _)) in (0..).zip(&self.0) {
            let is_equal = known.sha256[..].ct_eq(&hash[..]);
            position = u64::conditional_select(&position, &index, is_equal);
            found |= is_equal;
        }

        let position = usize::try_from(position).ok()?;
        if bool::from(found) { self.0.get(position).map(|(_, identity)| identity) } else { None }
    }
}
