//! The authentication of a bearer token.

use std::sync::Arc;

#[cfg(feature = "oauth")]
use super::oauth::OAuth;
use super::{
    AuthError, Denied, Grant, Hierarchy, Identity, Scopes, Secret, StaticToken,
    static_tokens::StaticTokens,
};
use crate::clock::Clock;

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone)]
pub struct IssuerOptions {
    /// The issuer identifier, exactly as in its metadata and in `iss` claims.
    pub issuer: String,
    /// The URL of its JWK set; discovered if absent.
    pub jwks_url: Option<String>,
    /// Additional accepted audiences.
    pub audiences: Vec<String>,
    /// Whether to accept tokens with the type `JWT` or without a type, too.
    pub any_typ: bool,
    /// The claim with the scopes; `scope` in RFC 9068.
    pub scope_claim: String,
    /// The claim with the groups, with which resources can be shared.
    pub groups_claim: String,
    /// How to introspect opaque tokens; without this they are rejected.
    pub introspection: Option<IntrospectionOptions>,
}

/// How to introspect opaque tokens (RFC 7662).
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// The introspection endpoint; discovered if absent.
    pub url: Option<String>,
    /// Larder's client id at the authorization server.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
}

/// The authentication mode.
#[derive(Debug, Clone)]
pub enum AuthOptions {
    /// No authentication.
    None,
    /// Access tokens of authorization servers.
    OAuth {
        /// The audience that tokens must have: the URL at which clients reach
        /// the server.
        audience: String,
        /// The accepted authorization servers.
        issuers: Vec<IssuerOptions>,
        /// Which scopes imply others.
        hierarchy: Hierarchy,
    },
    /// Tokens listed in the configuration.
    Static {
        /// The accepted tokens.
        tokens: Vec<StaticToken>,
        /// Which scopes imply others.
        hierarchy: Hierarchy,
    },
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct AuthOptionsError {
    /// The name of the setting in the configuration.
    pub setting: String,
    /// What is wrong.
    pub problem: String,
}

/// Authenticates the callers of requests.
#[derive(Debug)]
pub struct Authenticator {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    None,
    #[cfg(feature = "oauth")]
    OAuth(OAuth),
    Static(StaticTokens),
}

impl Authenticator {
    /// An authenticator with these options.
    ///
    /// # Errors
    /// The invalid setting.
    #[cfg_attr(not(feature = "oauth"), allow(unused_variables, clippy::needless_pass_by_value))]
    pub fn new(options: AuthOptions, clock: Arc<dyn Clock>) -> Result<Self, AuthOptionsError> {
        let kind = match options {
            AuthOptions::None => Kind::None,
            AuthOptions::Static { tokens, hierarchy } => {
                let grant = |scopes| Grant::Scopes(Arc::new(hierarchy.expand(scopes)));
                Kind::Static(StaticTokens::new(tokens, grant))
            }
            #[cfg(feature = "oauth")]
            AuthOptions::OAuth { audience, issuers, hierarchy } => {
                Kind::OAuth(OAuth::new(&audience, issuers, hierarchy, clock)?)
            }
            #[cfg(not(feature = "oauth"))]
            AuthOptions::OAuth { .. } => {
                return Err(AuthOptionsError {
                    setting: "auth.mode".into(),
                    problem: "this build has no OAuth: enable the feature `oauth`".into(),
                });
            }
        };
        Ok(Self { kind })
    }

    /// Whether requests need a token.
    pub fn is_required(&self) -> bool {
        !matches!(self.kind, Kind::None)
    }

    /// The accepted issuers, for the protected resource metadata.
    pub fn issuers(&self) -> Vec<&str> {
        match &self.kind {
            #[cfg(feature = "oauth")]
            Kind::OAuth(oauth) => oauth.issuers(),
            Kind::None | Kind::Static(_) => Vec::new(),
        }
    }

    /// The identity of the bearer of a token.
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Unavailable`].
    pub async fn identify(&self, token: &str) -> Result<Identity, AuthError> {
        match &self.kind {
            Kind::None => Ok(Identity::local()),
            Kind::Static(tokens) => Ok(tokens.find(token).cloned().ok_or(Denied::Unknown)?),
            #[cfg(feature = "oauth")]
            Kind::OAuth(oauth) => oauth.identify(token).await,
        }
    }

    /// Whether tokens can be verified: the keys of each issuer are cached or can
    /// be fetched.
    pub async fn is_ready(&self) -> bool {
        match &self.kind {
            #[cfg(feature = "oauth")]
            Kind::OAuth(oauth) => oauth.is_ready().await,
            Kind::None | Kind::Static(_) => true,
        }
    }

    /// Connects to each issuer. Returns what was found or what failed, by issuer.
    pub async fn check(&self) -> Vec<(String, Result<String, String>)> {
        match &self.kind {
            #[cfg(feature = "oauth")]
            Kind::OAuth(oauth) => oauth.check().await,
            Kind::None | Kind::Static(_) => Vec::new(),
        }
    }
}

/// A grant of these scopes, without the scopes they imply.
impl From<Scopes> for Grant {
    fn from(scopes: Scopes) -> Self {
        Self::Scopes(Arc::new(scopes))
    }
}
