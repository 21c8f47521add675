//! Tokens that stand in the configuration, hashed: for small set-ups without
//! an authorization server.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::{Grant, Identity, Principal, Scopes};

/// A token known by its hash.
///
/// SHA-256 rather than a slow password hash: a token is 256 random bits, which
/// nobody guesses however fast, and a slow hash would let anybody who sends
/// tokens keep the server busy.
#[derive(Clone)]
pub struct StaticToken {
    /// Whose it is: resources and sessions are bound to this name.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// What it allows.
    pub scopes: Scopes,
    /// The groups that it is in.
    pub groups: Vec<String>,
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, scopes, .. } = self;
        f.debug_struct("StaticToken").field("name", name).field("scopes", scopes).finish()
    }
}

/// All of them, with whom each stands for.
#[derive(Debug)]
pub(super) struct StaticTokens(Vec<(StaticToken, Identity)>);

impl StaticTokens {
    /// `grant` says what scopes come to.
    pub(super) fn new(tokens: Vec<StaticToken>, grant: impl Fn(Scopes) -> Grant) -> Self {
        let identified = tokens.into_iter().map(|token| {
            let principal = Principal::Static { name: token.name.as_str().into() };
            let identity = Identity::new(principal, grant(token.scopes.clone()), None);
            let identity = identity.in_groups(token.groups.clone());
            (token, identity)
        });
        Self(identified.collect())
    }

    /// Whom a token stands for. Accepts as long for one that is nearly right as
    /// for one that is not at all.
    pub(super) fn find(&self, token: &str) -> Option<&Identity> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let (mut found, mut at) = (Choice::from(0), 0_u64);
        for (index, (known, _)) in (0..).zip(&self.0) {
            let same = known.sha256[..].ct_eq(&hash[..]);
            at = u64::conditional_select(&at, &index, same);
            found |= same;
        }
        let at = usize::try_from(at).ok()?;
        if bool::from(found) { self.0.get(at).map(|(_, identity)| identity) } else { None }
    }
}
