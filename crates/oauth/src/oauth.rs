//! Access tokens of authorization servers.

use std::{net::IpAddr, sync::Arc, time::Duration};

use larder_runtime::clock::{Clock, Timestamp};

use super::{
    AuthError, AuthOptionsError, Denied, Hierarchy, Identity, IssuerOptions,
    fetch::Fetcher,
    issuer::Issuer,
    jwt::{Jwt, is_jwt},
    own_tokens::{self, OwnTokens},
    verified::{TokenHash, VerifiedTokens},
};

/// How long a verified JWT is cached. A withdrawn key is accepted for that long.
const JWT_CACHE_TTL: Duration = Duration::from_secs(5 * 60);
/// How long an introspected token is cached. A revoked token is accepted for that
/// long.
const OPAQUE_CACHE_TTL: Duration = Duration::from_secs(30);

/// Authenticates by access tokens, of one or more authorization servers.
#[derive(Debug)]
pub(super) struct OAuth {
    issuers: Vec<Issuer>,
    verified: VerifiedTokens,
    clock: Arc<dyn Clock>,
}

impl OAuth {
    /// # Errors
    /// The invalid setting.
    pub(super) fn new(
        audience: &str,
        issuers: Vec<IssuerOptions>,
        mut own: Option<Arc<dyn OwnTokens>>,
        hierarchy: Hierarchy,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthOptionsError> {
        install_crypto();
        let fetcher = Fetcher::new().map_err(|error| AuthOptionsError {
            setting: "auth.issuers".into(),
            problem: format!("the HTTP client cannot be created: {error}"),
        })?;

        let hierarchy = Arc::new(hierarchy);
        let issuers = issuers.into_iter().enumerate().map(|(index, options)| {
            let hierarchy = Arc::clone(&hierarchy);
            let clock = Arc::clone(&clock);
            // At most one issuer is this server.
            let own = if options.is_own { own.take() } else { None };
            Issuer::new(options, audience, own, hierarchy, &fetcher, clock).map_err(
                |(setting, problem)| AuthOptionsError {
                    setting: format!("auth.issuers[{index}].{setting}"),
                    problem,
                },
            )
        });

        let issuers = issuers.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { issuers, verified: VerifiedTokens::default(), clock })
    }

    pub(super) fn issuers(&self) -> Vec<&str> {
        self.issuers.iter().map(Issuer::name).collect()
    }

    /// The identity of the bearer of a token, and until when it is trusted.
    pub(super) async fn identify(
        &self,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<(Identity, Timestamp), AuthError> {
        let now = self.clock.now();
        let hash = TokenHash::new(token);
        if let Some(verified) = self.verified.get(hash, now) {
            return Ok(verified);
        }

        let (identity, ttl) = if is_jwt(token) {
            let jwt = Jwt::read(token)?;
            let name = jwt.issuer()?;
            let issuer = self.issuers.iter().find(|issuer| issuer.name() == name);
            let issuer = issuer.ok_or(Denied::Issuer)?;
            let ttl = if issuer.is_own() { own_tokens::CACHE_TTL } else { JWT_CACHE_TTL };
            (issuer.verify(&jwt, now).await?, ttl)
        } else {
            let issuer = self.issuers.iter().find(|issuer| issuer.introspects());
            let issuer = issuer.ok_or(Denied::Unknown)?;
            (issuer.introspect(token, now, peer).await?, OPAQUE_CACHE_TTL)
        };

        let until = now.saturating_add(ttl);
        let until = identity.expires().map_or(until, |expires| until.min(expires));
        self.verified.insert(hash, identity.clone(), until);
        Ok((identity, until))
    }

    /// Whether the keys of each issuer are cached or can be fetched.
    pub(super) async fn is_ready(&self) -> bool {
        let ready = futures_util::future::join_all(self.issuers.iter().map(Issuer::ready)).await;
        ready.into_iter().all(|ready| ready)
    }

    /// Connects to each issuer. Returns what was found or what failed, by issuer.
    pub(super) async fn check(&self) -> Vec<(String, Result<String, String>)> {
        let checks = self
            .issuers
            .iter()
            .map(async |issuer| (issuer.name().to_owned(), issuer.check().await));
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
