//! The identity of a caller, from the credentials of a request.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use larder_runtime::clock::Timestamp;

use super::{Grant, Owner, Principal, Scopes, Secret, validity::Validity};

/// The principal, grant and groups of verified credentials. Each request is
/// authenticated anew, also within a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity {
    principal: Principal,
    owner: Owner,
    grant: Grant,
    groups: Arc<BTreeSet<String>>,

    expires: Option<Timestamp>,
    token: Option<Arc<TokenFacts>>,
    validity: Option<Validity>,
    bearer: Option<Arc<Secret>>,
}

/// The issuer's statements about a token, for the audit log.
#[derive(Debug)]
struct TokenFacts {
    client: Option<Box<str>>,
    id: Option<Box<str>>,
}

impl Identity {
    /// The identity of all callers without authentication.
    pub fn local() -> Self {
        Self::new(Principal::Local, Grant::All, None)
    }

    /// The identity of a principal, with a grant and optionally an expiry.
    pub fn new(principal: Principal, grant: Grant, expires: Option<Timestamp>) -> Self {
        let owner = principal.owner();
        Self {
            principal,
            owner,
            grant,
            groups: Arc::default(),
            expires,
            token: None,
            validity: None,
            bearer: None,
        }
    }

    /// Sets the groups.
    #[must_use]
    pub fn with_groups(self, groups: impl IntoIterator<Item = String>) -> Self {
        Self { groups: Arc::new(groups.into_iter().collect()), ..self }
    }

    /// Sets the client and the ID (`jti`) of the token.
    #[must_use]
    pub fn with_token(self, client: Option<&str>, id: Option<&str>) -> Self {
        let [client, id] = [client, id].map(|text| text.map(Box::from));
        Self { token: Some(Arc::new(TokenFacts { client, id })), ..self }
    }

    /// Sets what notices that the credentials are no longer valid.
    #[must_use]
    /// Adds until when the credentials of the request stay valid.
    pub fn with_validity(self, validity: Validity) -> Self {
        Self { validity: Some(validity), ..self }
    }

    /// Keeps the token itself, for an upstream for which it is exchanged. Nothing else needs it.
    #[must_use]
    pub fn with_bearer(self, token: &str) -> Self {
        Self { bearer: Some(Arc::new(Secret::new(token))), ..self }
    }

    /// The token itself, if it was kept.
    pub fn bearer(&self) -> Option<&Secret> {
        self.bearer.as_deref()
    }

    /// The client that the token was issued to.
    pub fn client(&self) -> Option<&str> {
        self.token.as_ref()?.client.as_deref()
    }

    /// The ID of the token (`jti`).
    pub fn token_id(&self) -> Option<&str> {
        self.token.as_ref()?.id.as_deref()
    }

    /// Notices when the credentials are no longer valid. None if they always are.
    pub fn validity(&self) -> Option<Validity> {
        self.validity.clone()
    }

    /// Resolves when the credentials are no longer valid, or never.
    pub fn invalidated(&self) -> BoxFuture<'static, ()> {
        match &self.validity {
            Some(validity) => validity.ended(),
            None => std::future::pending().boxed(),
        }
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

    /// The caller's permissions.
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

/// Equal identities are the same caller with the same permissions, whatever the token.
impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.owner == other.owner
            && self.principal == other.principal
            && self.grant == other.grant
            && self.groups == other.groups
            && self.expires == other.expires
    }
}

impl Eq for Identity {}

impl Default for Identity {
    fn default() -> Self {
        Self::local()
    }
}
