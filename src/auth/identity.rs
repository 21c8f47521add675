//! The identity of a caller, from the credentials of a request.

use std::{collections::BTreeSet, sync::Arc};

use super::{Grant, Owner, Principal, Scopes};
use crate::clock::Timestamp;

/// The principal, grant and groups of verified credentials. Each request is
/// authenticated anew, also within a session. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    principal: Principal,
    owner: Owner,
    grant: Grant,
    groups: Arc<BTreeSet<String>>,
    expires: Option<Timestamp>,
}

impl Identity {
    /// The identity of all callers without authentication.
    pub fn local() -> Self {
        Self::new(Principal::Local, Grant::All, None)
    }

    /// The identity of a principal, with a grant and optionally an expiry.
    pub fn new(principal: Principal, grant: Grant, expires: Option<Timestamp>) -> Self {
        let owner = principal.owner();
        Self { principal, owner, grant, groups: Arc::default(), expires }
    }

    /// Sets the groups.
    #[must_use]
    pub fn with_groups(self, groups: impl IntoIterator<Item = String>) -> Self {
        Self { groups: Arc::new(groups.into_iter().collect()), ..self }
    }

    /// Whether the caller is in a group, according to the issuer of the
    /// credentials.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.contains(group)
    }

    /// The authenticated principal.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The principal's [`owner`](Principal::owner), without hashing again.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What the caller may do.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether the grant covers these scopes.
    pub fn allows(&self, required: &Scopes) -> bool {
        self.grant.allows(required)
    }

    /// The expiry of the credentials, at which streams opened with them end.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::local()
    }
}
