//! Principals, and the owners of dynamic resources and sessions.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The authenticated caller.
///
/// Sessions, streams and resources are bound to the principal, not to the token,
/// so they stay accessible with a refreshed token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// All callers without authentication: loopback, stdio.
    #[default]
    Local,
    /// A user of an authorization server.
    User {
        /// The issuer of the token.
        issuer: Arc<str>,
        /// The `sub` of the user's tokens, unique at the issuer.
        subject: Arc<str>,
    },
    /// A client that acts on its own behalf: its tokens have its client id as
    /// subject (RFC 9068, section 2.2) or no subject.
    Machine {
        /// The issuer of the token.
        issuer: Arc<str>,
        /// The client id.
        client: Arc<str>,
    },
    /// The bearer of a token listed in the configuration.
    Static {
        /// The name of the token in the configuration.
        name: Arc<str>,
    },
}

impl Principal {
    /// The issuer of the token; `None` for local and static principals.
    pub fn issuer(&self) -> Option<&str> {
        match self {
            Self::User { issuer, .. } | Self::Machine { issuer, .. } => Some(issuer),
            Self::Local | Self::Static { .. } => None,
        }
    }

    /// The owner of this principal's resources and sessions.
    ///
    /// Different principals have different owners: each part is hashed with its
    /// length, so parts cannot be confused. It is a hash, because it becomes
    /// part of keys and file names, where a subject could be too long or unsafe.
    ///
    /// ```
    /// use larder_identity::Principal;
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

/// A short description for logs.
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

/// The owner of dynamic resources and sessions. To other owners they do not
/// exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(Arc<str>);

impl Owner {
    /// An owner with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The owner's name.
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
        fn different_principals_have_different_owners(all in prop::collection::hash_set(principal(), 0..40)) {
            let owners: HashSet<_> = all.iter().map(Principal::owner).collect();
            prop_assert_eq!(owners.len(), all.len());

            for owner in owners {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                prop_assert!(owner.as_str().bytes().all(plain));
            }
        }
    }
}
