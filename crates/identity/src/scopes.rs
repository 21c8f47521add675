//! Scopes, the hierarchy between them, and grants.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// A set of scopes (RFC 6749, section 3.3). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scopes(Arc<BTreeSet<Arc<str>>>);

/// An invalid scope name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The name is empty or has invalid characters.
    #[error("{0:?} is not a scope: use printable ASCII characters except space, \" and \\")]
    Malformed(String),
    /// A resource server never requires `offline_access`, which concerns only
    /// client and authorization server (2026-07-28, authorization: Refresh Tokens).
    #[error("offline_access concerns only client and authorization server; remove it")]
    OfflineAccess,
}

impl Scopes {
    /// Scopes that a server may require.
    ///
    /// # Errors
    /// The first invalid name.
    pub fn required<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, ScopeError> {
        let mut scopes = BTreeSet::new();
        for name in names {
            let name = name.as_ref();
            let is_scope = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            if name.is_empty() || !name.bytes().all(is_scope) {
                return Err(ScopeError::Malformed(name.chars().take(80).collect()));
            }
            if name == "offline_access" {
                return Err(ScopeError::OfflineAccess);
            }

            scopes.insert(Arc::from(name));
        }
        Ok(Self(Arc::new(scopes)))
    }

    /// The scopes of a token: names separated by spaces.
    pub fn granted(text: &str) -> Self {
        Self(Arc::new(text.split_ascii_whitespace().map(Arc::from).collect()))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `others` has all of these scopes.
    pub fn is_within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        if others.is_within(self) {
            return self.clone();
        }
        Self(Arc::new(self.0.union(&others.0).cloned().collect()))
    }

    /// The names in alphabetical order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

/// The names in alphabetical order, separated by spaces.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// Which scopes imply which others (2026-07-28, authorization: Step-Up
/// Authorization Flow).
///
/// ```
/// use larder_identity::{Hierarchy, Scopes};
///
/// let hierarchy = Hierarchy::new([
///     ("mcp:admin", vec!["mcp:write"]),
///     ("mcp:write", vec!["mcp:read"]),
/// ]);
/// let granted = hierarchy.expand(Scopes::granted("mcp:admin other"));
/// assert_eq!(granted.to_string(), "mcp:admin mcp:read mcp:write other");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hierarchy(BTreeMap<Arc<str>, Vec<Arc<str>>>);

impl Hierarchy {
    /// A hierarchy from scopes with those that they imply.
    pub fn new<B: AsRef<str>, N: AsRef<str>>(
        rules: impl IntoIterator<Item = (B, impl IntoIterator<Item = N>)>,
    ) -> Self {
        let arcs = |names: &mut dyn Iterator<Item = N>| {
            names.map(|name| Arc::from(name.as_ref())).collect()
        };

        let rules = rules
            .into_iter()
            .map(|(broad, narrow)| (Arc::from(broad.as_ref()), arcs(&mut narrow.into_iter())));
        Self(rules.collect())
    }

    /// The scopes and all that they imply, directly or indirectly.
    pub fn expand(&self, scopes: Scopes) -> Scopes {
        let mut all = Arc::unwrap_or_clone(scopes.0);
        let mut pending: Vec<_> = all.iter().cloned().collect();

        while let Some(scope) = pending.pop() {
            for implied in self.0.get(&scope).into_iter().flatten() {
                if all.insert(Arc::clone(implied)) {
                    pending.push(Arc::clone(implied));
                }
            }
        }

        Scopes(Arc::new(all))
    }
}

/// The permissions of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Everything: without authentication.
    All,
    /// Everything that requires no other scopes.
    Scopes(Arc<Scopes>),
}

impl Grant {
    /// Whether the grant covers the required scopes.
    pub fn allows(&self, required: &Scopes) -> bool {
        match self {
            Self::All => true,
            Self::Scopes(granted) => required.is_within(granted),
        }
    }
}

/// A grant of these scopes, without the scopes they imply.
impl From<Scopes> for Grant {
    fn from(scopes: Scopes) -> Self {
        Self::Scopes(Arc::new(scopes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_may_imply_each_other() {
        let circle = Hierarchy::new([("a", ["b"]), ("b", ["a"])]);
        assert_eq!(circle.expand(Scopes::granted("a")).to_string(), "a b");
    }

    #[test]
    fn offline_access_is_never_required() {
        assert_eq!(Scopes::required(["offline_access"]), Err(ScopeError::OfflineAccess));
        for bad in ["", "a b", "a\"b", "a\\b", "ä", "a\n"] {
            assert!(Scopes::required([bad]).is_err(), "{bad:?}");
        }
    }
}
