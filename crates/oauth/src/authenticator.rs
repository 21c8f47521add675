//! The authentication of a bearer token.

use std::{net::IpAddr, sync::Arc};

use futures_util::FutureExt;
use larder_runtime::clock::{Clock, Timestamp};
use tokio::sync::watch;

use super::{
    AuthError, Denied, Grant, Hierarchy, Identity, Secret, StaticToken, Validity,
    static_tokens::StaticTokens,
};
use super::{oauth::OAuth, own_tokens::OwnTokens};

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
    /// Whether this server itself is the issuer ([`Authenticator::with_own_tokens`]).
    pub is_own: bool,
}

impl IssuerOptions {
    /// This server itself.
    pub fn own(issuer: String) -> Self {
        Self {
            issuer,
            jwks_url: None,
            audiences: Vec::new(),
            any_typ: false,
            scope_claim: "scope".to_owned(),
            groups_claim: "groups".to_owned(),
            introspection: None,
            is_own: true,
        }
    }
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
    /// The prefix of every opaque token of the issuer. Tokens without it are refused without a
    /// request.
    pub token_prefix: Option<String>,
    /// The limits on requests.
    pub limits: IntrospectionLimits,
}

/// The limits on introspection requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntrospectionLimits {
    /// Concurrent requests.
    pub concurrent: usize,
    /// Requests that wait for one of these to end. More are refused.
    pub waiting: usize,
    /// Tokens that are not active, from one address within a minute. The requests of an
    /// address that sends more do not wait, and all such addresses share an eighth of the
    /// concurrent ones.
    pub failures_per_minute: u32,
}

impl Default for IntrospectionLimits {
    fn default() -> Self {
        Self { concurrent: 32, waiting: 256, failures_per_minute: 60 }
    }
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
    /// The problem, in words for an operator.
    pub problem: String,
}

/// Authenticates the callers of requests.
#[derive(Debug)]
pub struct Authenticator {
    kind: AuthenticatorKind,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
enum AuthenticatorKind {
    None,
    OAuth(OAuth),
    /// Replaced when the configuration is reloaded.
    Static(watch::Sender<Arc<StaticTokens>>),
}

impl Authenticator {
    /// An authenticator with these options.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(options: AuthOptions, clock: Arc<dyn Clock>) -> Result<Self, AuthOptionsError> {
        Self::build(options, clock, None)
    }

    /// Does what [`Authenticator::new`] does, and verifies the tokens that this server issues.
    ///
    /// # Errors
    /// As [`Authenticator::new`].
    pub fn with_own_tokens(
        options: AuthOptions,
        own: Option<Arc<dyn OwnTokens>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthOptionsError> {
        Self::build(options, clock, own)
    }

    fn build(
        options: AuthOptions,
        clock: Arc<dyn Clock>,
        own: Option<Arc<dyn OwnTokens>>,
    ) -> Result<Self, AuthOptionsError> {
        let kind = match options {
            AuthOptions::None => AuthenticatorKind::None,
            AuthOptions::Static { tokens, hierarchy } => {
                AuthenticatorKind::Static(watch::Sender::new(static_tokens(tokens, &hierarchy)))
            }
            AuthOptions::OAuth { audience, issuers, hierarchy } => AuthenticatorKind::OAuth(
                OAuth::new(&audience, issuers, own, hierarchy, Arc::clone(&clock))?,
            ),
        };

        Ok(Self { kind, clock })
    }

    /// Replaces the tokens of the configuration. What else changed needs a restart.
    pub fn reload(&self, options: AuthOptions) {
        if let (AuthenticatorKind::Static(current), AuthOptions::Static { tokens, hierarchy }) =
            (&self.kind, options)
        {
            current.send_replace(static_tokens(tokens, &hierarchy));
        }
    }

    /// Whether requests need a token.
    pub fn is_required(&self) -> bool {
        !matches!(self.kind, AuthenticatorKind::None)
    }

    /// The accepted issuers, for the protected resource metadata.
    pub fn issuers(&self) -> Vec<&str> {
        match &self.kind {
            AuthenticatorKind::OAuth(oauth) => oauth.issuers(),
            AuthenticatorKind::None | AuthenticatorKind::Static(_) => Vec::new(),
        }
    }

    /// The identity of the bearer of a token.
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Unavailable`].
    pub async fn identify(&self, token: &str) -> Result<Identity, AuthError> {
        Ok(self.verify(token, None).await?.0)
    }

    /// The identity of the bearer of a token, from this address. It notices when the token
    /// is no longer valid ([`Identity::invalidated`]).
    ///
    /// # Errors
    /// As [`Authenticator::identify`].
    pub async fn authenticate(
        self: &Arc<Self>,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<Identity, AuthError> {
        let (identity, _) = self.verify(token, peer).await?;
        if !self.is_required() {
            return Ok(identity);
        }

        let this = Arc::clone(self);
        let token = Arc::<str>::from(token);
        let expires = identity.expires();
        let validity = Validity::new(move || {
            let this = Arc::clone(&this);
            let token = Arc::clone(&token);
            async move { this.until_invalid(&token, expires).await }.boxed()
        });

        Ok(identity.with_validity(validity))
    }

    /// The identity of the bearer of a token, and until when it is trusted.
    async fn verify(
        &self,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<(Identity, Option<Timestamp>), AuthError> {
        match &self.kind {
            AuthenticatorKind::None => Ok((Identity::local(), None)),
            AuthenticatorKind::Static(tokens) => {
                let tokens = Arc::clone(&tokens.borrow());
                let identity = tokens.find(token).ok_or(Denied::Unknown)?;

                let expires = identity.expires();
                if expires.is_some_and(|expires| expires <= self.clock.now()) {
                    return Err(Denied::Expired.into());
                }
                Ok((identity.clone(), expires))
            }
            AuthenticatorKind::OAuth(oauth) => {
                let (identity, until) = oauth.identify(token, peer).await?;
                Ok((identity, Some(until)))
            }
        }
    }

    /// Waits until a token expires or is refused. While it cannot be verified, it counts as
    /// valid.
    async fn until_invalid(&self, token: &str, expires: Option<Timestamp>) {
        let mut changes = match &self.kind {
            AuthenticatorKind::Static(tokens) => Some(tokens.subscribe()),
            AuthenticatorKind::None | AuthenticatorKind::OAuth(_) => None,
        };

        loop {
            let until = match self.verify(token, None).await {
                Ok((_, until)) => until,
                Err(AuthError::Unavailable { retry_after, .. }) => {
                    Some(self.clock.now().saturating_add(retry_after))
                }
                Err(_) => return,
            };

            if expires.is_some_and(|expires| expires <= self.clock.now()) {
                return;
            }

            let wait = async {
                match until.into_iter().chain(expires).min() {
                    Some(deadline) => self.clock.sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };

            match &mut changes {
                Some(changes) => tokio::select! {
                    () = wait => {}
                    _ = changes.changed() => {}
                },
                None => wait.await,
            }
        }
    }

    /// Whether tokens can be verified: the keys of each issuer are cached or can
    /// be fetched.
    pub async fn is_ready(&self) -> bool {
        match &self.kind {
            AuthenticatorKind::OAuth(oauth) => oauth.is_ready().await,
            AuthenticatorKind::None | AuthenticatorKind::Static(_) => true,
        }
    }

    /// Connects to each issuer. Returns what was found or what failed, by issuer.
    pub async fn check(&self) -> Vec<(String, Result<String, String>)> {
        match &self.kind {
            AuthenticatorKind::OAuth(oauth) => oauth.check().await,
            AuthenticatorKind::None | AuthenticatorKind::Static(_) => Vec::new(),
        }
    }
}

fn static_tokens(tokens: Vec<StaticToken>, hierarchy: &Hierarchy) -> Arc<StaticTokens> {
    let grant = |scopes| Grant::Scopes(Arc::new(hierarchy.expand(scopes)));
    Arc::new(StaticTokens::new(tokens, grant))
}
