//! Who calls, and whose everything dynamic is.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The caller, as the server knows it (never as the client says).
///
/// It is what sessions, streams and resources are bound to. A token is not: a
/// refreshed token of the same principal goes on where the old one stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// Nobody was asked who they are: loopback, stdio.
    #[default]
    Local,
    /// A person, by the word of an authorization server.
    User {
        /// Who says so.
        issuer: Arc<str>,
        /// The `sub` of the person's tokens, unique at that issuer.
        subject: Arc<str>,
    },
    /// A program that acts for itself: its tokens' subject is its client id
    /// (RFC 9068, 2.2), or they have none.
    Machine {
        /// Who says so.
        issuer: Arc<str>,
        /// Its client id.
        client: Arc<str>,
    },
    /// The bearer of a token that stands in the configuration.
    Static {
        /// The name it has there.
        name: Arc<str>,
    },
}

impl Principal {
    /// Who says that it is they; none where it is the server itself.
    pub fn issuer(&self) -> Option<&str> {
        match self {
            Self::User { issuer, .. } | Self::Machine { issuer, .. } => Some(issuer),
            Self::Local | Self::Static { .. } => None,
        }
    }

    /// The scope in which this caller's resources and sessions live.
    ///
    /// No two principals have the same one: each part is hashed with its
    /// length, so that no part can reach into the next. A hash, because the
    /// owner becomes part of keys and file names, for which what an issuer
    /// puts into a subject is neither short nor harmless enough.
    ///
    /// ```
    /// use larder::auth::Principal;
    ///
    /// let user = |issuer: &str, subject: &str| Principal::User {
    ///     issuer: issuer.into(),
    ///     subject: subject.into(),
    /// };
    /// assert_eq!(Principal::Local.owner().as_str(), "local");
    /// assert_ne!(user("https://a", "bc").owner(), user("https://ab", "c").owner());
    /// assert_eq!(user("https://a", "b").owner(), user("https://a", "b").owner());
    /// ```
    pub fn owner(&self) -> Owner {
        static LOCAL: LazyLock<Owner> = LazyLock::new(|| Owner::new("local"));
        let hashed = |kind: &str, parts: &[&str]| {
            let mut hash = Sha256::new();
            for part in parts {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part.as_bytes());
            }
            Owner::new(format!("{kind}-{}", BASE64_URL_SAFE_NO_PAD.encode(hash.finalize())))
        };
        match self {
            Self::Local => LOCAL.clone(),
            Self::User { issuer, subject } => hashed("user", &[issuer, subject]),
            Self::Machine { issuer, client } => hashed("machine", &[issuer, client]),
            Self::Static { name } => hashed("static", &[name]),
        }
    }
}

/// For logs: who it is in one word.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::User { issuer, subject } => write!(f, "user {subject:?} of {issuer}"),
            Self::Machine { issuer, client } => write!(f, "machine {client:?} of {issuer}"),
            Self::Static { name } => write!(f, "static {name:?}"),
        }
    }
}

/// Whose a resource is: everything dynamic is scoped by it, and another
/// owner's things look as if they were not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(Arc<str>);

impl Owner {
    /// An owner of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn principal() -> impl Strategy<Value = Principal> {
        let part = "[ab:/]{0,3}";
        (0..4, part, part).prop_map(|(kind, a, b)| {
            let (issuer, b): (Arc<str>, Arc<str>) = (a.into(), b.into());
            match kind {
                0 => Principal::Local,
                1 => Principal::User { issuer, subject: b },
                2 => Principal::Machine { issuer, client: b },
                _ => Principal::Static { name: b },
            }
        })
    }

    proptest! {
        #[test]
        fn no_two_principals_own_the_same(all in prop::collection::hash_set(principal(), 0..40)) {
            let owners: HashSet<_> = all.iter().map(Principal::owner).collect();
            prop_assert_eq!(owners.len(), all.len());
            for owner in owners {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                prop_assert!(owner.as_str().bytes().all(plain));
            }
        }
    }
}
