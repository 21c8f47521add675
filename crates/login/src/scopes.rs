//! The scopes of this server and `offline_access`, by which clients ask for a refresh token (OpenID
//! Connect Core 1.0, section 11). It is granted to whoever may log in, and no access token has it:
//! it concerns only client and authorization server.

use larder_oauth::Scopes;

use super::{LoginServer, Person};

pub(super) const OFFLINE_ACCESS: &str = "offline_access";

impl LoginServer {
    /// The scopes that a user can be granted. `None` if they may not log in.
    pub(super) fn grantable(&self, person: &Person) -> Option<Scopes> {
        let allowed = self.options.hierarchy.expand(self.policy.scopes(person)?);
        Some(allowed.union(&Scopes::granted(OFFLINE_ACCESS)))
    }

    /// All scopes that clients can ask for.
    pub(super) fn known_scopes(&self) -> Scopes {
        let names = self.policy.grants.iter().map(|(scope, _)| scope.as_str());
        let granted = Scopes::granted(&names.collect::<Vec<_>>().join(" "));
        self.options.hierarchy.expand(granted).union(&Scopes::granted(OFFLINE_ACCESS))
    }
}

/// The names that both have.
pub(super) fn within(scopes: &str, allowed: &Scopes) -> String {
    let scopes = Scopes::granted(scopes);
    let names = scopes.names().filter(|name| Scopes::granted(name).is_within(allowed));
    names.collect::<Vec<_>>().join(" ")
}

/// The scopes that concern this server as a resource.
pub(super) fn without_offline(scopes: &str) -> String {
    let names = scopes.split(' ').filter(|name| !name.is_empty() && *name != OFFLINE_ACCESS);
    names.collect::<Vec<_>>().join(" ")
}

/// Whether a request asks for `offline_access`.
pub(super) fn asks_offline(scopes: Option<&str>) -> bool {
    scopes.is_some_and(|scopes| scopes.split(' ').any(|name| name == OFFLINE_ACCESS))
}
