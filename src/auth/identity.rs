//! Who calls and what they may do, as a request's credentials show it.

use std::{collections::BTreeSet, sync::Arc};

use super::{Grant, Owner, Principal, Scopes};
use crate::clock::Timestamp;

/// What verified credentials say. Taken from each request, never from a
/// session. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    principal: Principal,
    owner: Owner,
    grant: Grant,
    groups: Arc<BTreeSet<String>>,
    expires: Option<Timestamp>,
}

impl Identity {
    /// Where nobody is asked who they are.
    pub fn local() -> Self {
        Self::new(Principal::Local, Grant::All, None)
    }

    /// That principal, who may do that, until then if there is an end.
    pub fn new(principal: Principal, grant: Grant, expires: Option<Timestamp>) -> Self {
        let owner = principal.owner();
        Self { principal, owner, grant, groups: Arc::default(), expires }
    }

    /// The same, a member of those groups.
    #[must_use]
    pub fn in_groups(self, groups: impl IntoIterator<Item = String>) -> Self {
        Self { groups: Arc::new(groups.into_iter().collect()), ..self }
    }

    /// Whether they are in that group, by the word of whoever issued their
    /// credentials.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.contains(group)
    }

    /// Who it is.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The principal's [`owner`](Principal::owner), without hashing again.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What they may do.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether they may do what requires those scopes.
    pub fn allows(&self, required: &Scopes) -> bool {
        self.grant.allows(required)
    }

    /// When the credentials end, and with them the streams opened by them.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::local()
    }
}
