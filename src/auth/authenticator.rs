//! The authentication of a bearer token.

use std::{sync::Arc, time::Duration};

use super::{
    AuthError, Denied, Grant, Hierarchy, Identity, Scopes, Secret, StaticToken,
    fetch::Fetcher,
    issuer::Issuer,
    jwt::{Jwt, is_jwt},
    static_tokens::StaticTokens,
    verified::{TokenHash, VerifiedTokens},
};
use crate::clock::Clock;

/// How long a verified JWT is cached. A withdrawn key is accepted for that long.
const JWT_CACHE_TTL: Duration = Duration::from_secs(5 * 60);
/// How long an introspected token is cached. A revoked token is accepted for that
/// long.
const OPAQUE_CACHE_TTL: Duration = Duration::from_secs(30);

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
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
enum Kind {
    None,
    OAuth { issuers: Vec<Issuer>, verified: VerifiedTokens },
    Static(StaticTokens),
}

impl Authenticator {
    /// An authenticator with these options.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(options: AuthOptions, clock: Arc<dyn Clock>) -> Result<Self, AuthOptionsError> {
        let kind = match options {
            AuthOptions::None => Kind::None,
            AuthOptions::Static { tokens, hierarchy } => {
                let grant = |scopes| Grant::Scopes(Arc::new(hierarchy.expand(scopes)));
                Kind::Static(StaticTokens::new(tokens, grant))
            }
            AuthOptions::OAuth { audience, issuers, hierarchy } => {
                install_crypto();
                let fetcher = Fetcher::new().map_err(|error| AuthOptionsError {
                    setting: "auth.issuers".into(),
                    problem: format!("the HTTP client cannot be created: {error}"),
                })?;
                let hierarchy = Arc::new(hierarchy);
                let issuers = issuers.into_iter().enumerate().map(|(index, options)| {
                    let (hierarchy, clock) = (Arc::clone(&hierarchy), Arc::clone(&clock));
                    Issuer::new(options, &audience, hierarchy, &fetcher, clock).map_err(
                        |(setting, problem)| AuthOptionsError {
                            setting: format!("auth.issuers[{index}].{setting}"),
                            problem,
                        },
                    )
                });
                let issuers = issuers.collect::<Result<Vec<_>, _>>()?;
                Kind::OAuth { issuers, verified: VerifiedTokens::default() }
            }
        };
        Ok(Self { kind, clock })
    }

    /// Whether requests need a token.
    pub fn is_required(&self) -> bool {
        !matches!(self.kind, Kind::None)
    }

    /// The accepted issuers, for the protected resource metadata.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let issuers = match &self.kind {
            Kind::OAuth { issuers, .. } => &issuers[..],
            Kind::None | Kind::Static(_) => &[],
        };
        issuers.iter().map(Issuer::name)
    }

    /// The identity of the bearer of a token.
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Unavailable`].
    pub async fn identify(&self, token: &str) -> Result<Identity, AuthError> {
        match &self.kind {
            Kind::None => Ok(Identity::local()),
            Kind::Static(tokens) => Ok(tokens.find(token).cloned().ok_or(Denied::Unknown)?),
            Kind::OAuth { issuers, verified } => {
                let (now, hash) = (self.clock.now(), TokenHash::new(token));
                if let Some(identity) = verified.get(hash, now) {
                    return Ok(identity);
                }
                let (identity, ttl) = if is_jwt(token) {
                    let jwt = Jwt::read(token)?;
                    let name = jwt.issuer()?;
                    let issuer = issuers.iter().find(|issuer| issuer.name() == name);
                    (issuer.ok_or(Denied::Issuer)?.verify(&jwt, now).await?, JWT_CACHE_TTL)
                } else {
                    let issuer = issuers.iter().find(|issuer| issuer.introspects());
                    let issuer = issuer.ok_or(Denied::Unknown)?;
                    (issuer.introspect(token, now).await?, OPAQUE_CACHE_TTL)
                };
                let until = now.saturating_add(ttl);
                let until = identity.expires().map_or(until, |expires| until.min(expires));
                verified.insert(hash, identity.clone(), until);
                Ok(identity)
            }
        }
    }

    /// Whether tokens can be verified: the keys of each issuer are cached or can
    /// be fetched.
    pub async fn is_ready(&self) -> bool {
        let Kind::OAuth { issuers, .. } = &self.kind else { return true };
        let ready = futures_util::future::join_all(issuers.iter().map(Issuer::ready)).await;
        ready.into_iter().all(|ready| ready)
    }

    /// Connects to each issuer. Returns what was found or what failed, by issuer.
    pub async fn check(&self) -> Vec<(String, Result<String, String>)> {
        let Kind::OAuth { issuers, .. } = &self.kind else { return Vec::new() };
        let checks =
            issuers.iter().map(async |issuer| (issuer.name().to_owned(), issuer.check().await));
        futures_util::future::join_all(checks).await
    }
}

/// Installs the cryptography provider of `jsonwebtoken`, unless the program has
/// installed one already.
///
/// Without this call the features of `jsonwebtoken` decide, which panics if
/// another crate enables a second provider.
pub fn install_crypto() {
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}

/// A grant of these scopes, without the scopes they imply.
impl From<Scopes> for Grant {
    fn from(scopes: Scopes) -> Self {
        Self::Scopes(Arc::new(scopes))
    }
}
