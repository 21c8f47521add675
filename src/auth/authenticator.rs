//! The face: from a token to an identity.

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

/// How long a verified JWT is trusted without another look: so long its key
/// can still be in use after it was withdrawn.
const JWT_KEPT: Duration = Duration::from_secs(5 * 60);
/// The same for an opaque token: so long it can still be in use after it was revoked.
const OPAQUE_KEPT: Duration = Duration::from_secs(30);

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone)]
pub struct IssuerOptions {
    /// Its name, exactly as in its metadata and its tokens' `iss`.
    pub issuer: String,
    /// Where its keys are; discovered where this is missing.
    pub jwks_url: Option<String>,
    /// More audiences that its tokens may be for.
    pub audiences: Vec<String>,
    /// Accept tokens of the type `JWT`, or none, as well.
    pub any_typ: bool,
    /// The claim that the scopes stand in; `scope` by RFC 9068.
    pub scope_claim: String,
    /// The claim that the groups stand in, which resources can be shared with.
    pub groups_claim: String,
    /// How to ask it about opaque tokens; without this they are refused.
    pub introspection: Option<IntrospectionOptions>,
}

/// How an authorization server is asked about opaque tokens.
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// Where; discovered where this is missing.
    pub url: Option<String>,
    /// As whom we ask.
    pub client_id: String,
    /// The password for that.
    pub client_secret: Secret,
}

/// Whose tokens are accepted.
#[derive(Debug, Clone)]
pub enum AuthOptions {
    /// Nobody is asked who they are.
    None,
    /// Tokens of authorization servers.
    OAuth {
        /// Whom tokens must be for: the URL under which clients call us.
        audience: String,
        /// Whose tokens are accepted.
        issuers: Vec<IssuerOptions>,
        /// Which scopes imply others.
        hierarchy: Hierarchy,
    },
    /// Tokens of the configuration.
    Static {
        /// The tokens.
        tokens: Vec<StaticToken>,
        /// Which scopes imply others.
        hierarchy: Hierarchy,
    },
}

/// What is wrong with the options, and with which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct AuthOptionsError {
    /// The setting, as it is called in the configuration.
    pub setting: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Finds out who calls.
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
    /// # Errors
    /// Names the setting that cannot be used.
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
                    problem: format!("requests to issuers cannot be made: {error}"),
                })?;
                let hierarchy = Arc::new(hierarchy);
                let issuers = issuers.into_iter().enumerate().map(|(at, options)| {
                    let (hierarchy, clock) = (Arc::clone(&hierarchy), Arc::clone(&clock));
                    Issuer::new(options, &audience, hierarchy, &fetcher, clock).map_err(
                        |(setting, problem)| AuthOptionsError {
                            setting: format!("auth.issuers[{at}].{setting}"),
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

    /// Whether anybody is asked who they are.
    pub fn asks(&self) -> bool {
        !matches!(self.kind, Kind::None)
    }

    /// Whose tokens are accepted, for the protected resource metadata.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let issuers = match &self.kind {
            Kind::OAuth { issuers, .. } => &issuers[..],
            Kind::None | Kind::Static(_) => &[],
        };
        issuers.iter().map(Issuer::name)
    }

    /// Whom a token stands for.
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
                let (identity, kept) = if is_jwt(token) {
                    let jwt = Jwt::read(token)?;
                    let name = jwt.issuer()?;
                    let issuer = issuers.iter().find(|issuer| issuer.name() == name);
                    (issuer.ok_or(Denied::Issuer)?.verify(&jwt, now).await?, JWT_KEPT)
                } else {
                    let issuer = issuers.iter().find(|issuer| issuer.introspects());
                    let issuer = issuer.ok_or(Denied::Unknown)?;
                    (issuer.introspect(token, now).await?, OPAQUE_KEPT)
                };
                let until = now.saturating_add(kept);
                let until = identity.expires().map_or(until, |expires| until.min(expires));
                verified.insert(hash, identity.clone(), until);
                Ok(identity)
            }
        }
    }

    /// Whether tokens can be judged now: the keys of every issuer are here,
    /// or can be had.
    pub async fn is_ready(&self) -> bool {
        let Kind::OAuth { issuers, .. } = &self.kind else { return true };
        let ready = futures_util::future::join_all(issuers.iter().map(Issuer::ready)).await;
        ready.into_iter().all(|ready| ready)
    }

    /// Reaches every issuer: what was found, or why nothing was.
    pub async fn check(&self) -> Vec<(String, Result<String, String>)> {
        let Kind::OAuth { issuers, .. } = &self.kind else { return Vec::new() };
        let checks =
            issuers.iter().map(async |issuer| (issuer.name().to_owned(), issuer.check().await));
        futures_util::future::join_all(checks).await
    }
}

/// Says which cryptography checks signatures, before anything is checked.
/// Where a program on top of this crate has chosen already, that stays.
///
/// Left unsaid, it would follow from the features of `jsonwebtoken`, and
/// panic once some other crate turned on a second one.
pub fn install_crypto() {
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}

/// Scopes that imply nothing but themselves, for those who build a grant by hand.
impl From<Scopes> for Grant {
    fn from(scopes: Scopes) -> Self {
        Self::Scopes(Arc::new(scopes))
    }
}
