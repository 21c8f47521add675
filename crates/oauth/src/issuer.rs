//! One authorization server: its rules, its keys, its introspection.

use std::{net::IpAddr, sync::Arc};

use futures_util::FutureExt;
use larder_identity::{Grant, Identity, Principal, Scopes};
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::Mutex;
use reqwest::Url;

use super::{
    AuthError, Denied, Hierarchy, IssuerOptions,
    client::{Endpoint, Metadata, WellKnown, discover},
    fetch::Fetcher,
    introspection::Introspection,
    jwks::{Jwks, Source},
    jwt::{Claims, Jwt, Rules},
    keys::KeySet,
    own_tokens::{OwnSession, OwnTokens},
    url::safe_url,
};

#[derive(Debug)]
pub(super) struct Issuer {
    rules: Rules,
    name: Arc<str>,
    hierarchy: Arc<Hierarchy>,
    endpoints: Arc<Endpoints>,
    keys: Arc<Jwks>,
    introspection: Option<Introspection>,
    /// This server itself, if it is the issuer.
    own: Option<Arc<dyn OwnTokens>>,
}

/// The endpoints of an issuer, configured or discovered.
#[derive(Debug)]
struct Endpoints {
    fetcher: Fetcher,
    issuer: String,
    jwks: Option<Url>,
    introspection: Option<Url>,
    // A plain mutex, because no lock is held across an await.
    discovered: Mutex<Option<Discovered>>,
}

/// The endpoints that an issuer's metadata names.
#[derive(Debug, Clone)]
struct Discovered {
    jwks: Url,
    /// The URL, if any, or why it is refused, which concerns opaque tokens only.
    introspection: Result<Option<Url>, String>,
}

impl Discovered {
    fn read(metadata: &Metadata) -> Result<Self, String> {
        let url = |text: &str| safe_url(text).map_err(str::to_owned);
        let jwks = metadata.required(Endpoint::Keys, url)?;
        let introspection = metadata.optional(Endpoint::Introspection, url);
        Ok(Self { jwks, introspection })
    }
}

impl Endpoints {
    /// The issuer's metadata, cached until its JWK set turns out to be unusable.
    async fn metadata(&self) -> Result<Discovered, String> {
        let cached = self.discovered.lock().clone();
        if let Some(metadata) = cached {
            return Ok(metadata);
        }

        let fetcher = &self.fetcher;
        let issuer = &self.issuer;
        let read = |metadata: Metadata| Discovered::read(&metadata);
        let found = discover(fetcher, issuer, WellKnown::Any, read).await;
        let found = found.map_err(|error| format!("no usable metadata for {issuer}: {error}"))?;
        self.cache(Some(found.clone()));
        Ok(found)
    }

    fn cache(&self, metadata: Option<Discovered>) {
        *self.discovered.lock() = metadata;
    }

    async fn keys(&self) -> Result<KeySet, String> {
        let url = match &self.jwks {
            Some(url) => url.clone(),
            None => self.metadata().await?.jwks,
        };

        let read = match self.fetcher.get(&url).await {
            Ok(document) => KeySet::read(&document),
            Err(error) => Err(error.to_string()),
        };

        if read.is_err() {
            self.cache(None);
        }
        read.map_err(|problem| format!("{url}: {problem}"))
    }

    async fn introspection(&self) -> Result<Url, String> {
        if let Some(url) = &self.introspection {
            return Ok(url.clone());
        }

        let found = self.metadata().await?.introspection?;
        found
            .ok_or_else(|| format!("the metadata of {} has no introspection_endpoint", self.issuer))
    }
}

impl Issuer {
    /// An issuer with these options.
    ///
    /// # Errors
    /// The invalid setting and what is wrong with it.
    pub(super) fn new(
        options: IssuerOptions,
        audience: &str,
        own: Option<Arc<dyn OwnTokens>>,
        hierarchy: Arc<Hierarchy>,
        fetcher: &Fetcher,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, (&'static str, String)> {
        let url = |setting, text: &Option<String>| {
            let checked = text.as_deref().map(safe_url).transpose();
            checked.map_err(|problem| (setting, problem.to_owned()))
        };
        safe_url(&options.issuer).map_err(|problem| ("issuer", problem.to_owned()))?;

        let introspection = options.introspection;
        let introspection_url = introspection.as_ref().and_then(|i| i.url.clone());
        let endpoints = Arc::new(Endpoints {
            fetcher: fetcher.clone(),
            issuer: options.issuer.clone(),
            jwks: url("jwks_url", &options.jwks_url)?,
            introspection: url("introspection.url", &introspection_url)?,
            discovered: Mutex::default(),
        });

        let source: Source = Arc::new({
            let endpoints = Arc::clone(&endpoints);
            let own = own.clone();
            move || {
                let endpoints = Arc::clone(&endpoints);
                let own = own.clone();
                let keys = async move {
                    match own {
                        Some(own) => KeySet::read(&own.jwk_set().await?),
                        None => endpoints.keys().await,
                    }
                };
                keys.boxed()
            }
        });

        let audiences = [vec![audience.to_owned()], options.audiences].concat();
        Ok(Self {
            name: options.issuer.as_str().into(),
            rules: Rules {
                issuer: options.issuer,
                audiences,
                any_typ: options.any_typ,
                scope_claim: options.scope_claim,
                groups_claim: options.groups_claim,
            },
            hierarchy,
            endpoints,
            keys: Jwks::new(source, clock),
            introspection: introspection.map(|i| Introspection::new(fetcher.clone(), i)),
            own,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether this server itself is the issuer.
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Whether the issuer introspects opaque tokens.
    pub(super) fn introspects(&self) -> bool {
        self.introspection.is_some()
    }

    /// The identity in a JWT of this issuer.
    pub(super) async fn verify(
        &self,
        jwt: &Jwt<'_>,
        now: Timestamp,
    ) -> Result<Identity, AuthError> {
        let id = jwt.key()?;
        let algorithm = jwt.algorithm()?;
        let claims = jwt.check(&self.rules, now)?;
        let verifies = |key: &super::keys::Key, by| key.verifies(by, jwt.message, jwt.signature);
        self.keys.verify(id, algorithm, verifies).await?;

        if let Some(own) = &self.own {
            return self.own_identity(&**own, jwt.session()?, &claims).await;
        }

        let Claims { subject, client, scopes, groups, expires, token_id } = claims;
        let principal = if client.as_deref() == Some(&*subject) {
            self.machine(&subject)
        } else {
            self.user(&subject)
        };

        let identity = self.identity(principal, &scopes, Some(expires)).with_groups(groups);
        Ok(identity.with_token(client.as_deref(), token_id.as_deref()))
    }

    /// The identity in a token of this server, whose session has not ended.
    async fn own_identity(
        &self,
        own: &dyn OwnTokens,
        session: &str,
        claims: &Claims,
    ) -> Result<Identity, AuthError> {
        let session = own.session(session).await.map_err(|reason| {
            let retry_after = std::time::Duration::from_secs(5);
            AuthError::Unavailable { reason, retry_after }
        })?;

        let OwnSession { principal, groups, client } = session.ok_or(Denied::Inactive)?;
        let identity = self.identity(principal, &claims.scopes, Some(claims.expires));
        Ok(identity.with_groups(groups).with_token(Some(&client), claims.token_id.as_deref()))
    }

    /// The identity of an opaque token, by introspection.
    pub(super) async fn introspect(
        &self,
        token: &str,
        now: Timestamp,
        peer: Option<IpAddr>,
    ) -> Result<Identity, AuthError> {
        let introspection = self.introspection.as_ref().ok_or(Denied::Unknown)?;
        if !introspection.has_prefix(token) {
            return Err(Denied::Unknown.into());
        }

        let url = self.endpoints.introspection();
        let active = introspection.introspect(url, token, &self.rules, now, peer).await?;

        let principal = match (&active.subject, &active.client) {
            (Some(subject), client) if client.as_ref() != Some(subject) => self.user(subject),
            (_, Some(client)) => self.machine(client),
            _ => return Err(Denied::Claim("sub").into()),
        };

        let identity = self.identity(principal, &active.scopes, active.expires);
        let identity = identity.with_groups(active.groups);
        Ok(identity.with_token(active.client.as_deref(), active.token_id.as_deref()))
    }

    /// Connects to the issuer. Returns a description of what was found.
    ///
    /// # Errors
    /// What failed, or that the issuer has no usable key.
    pub(super) async fn check(&self) -> Result<String, String> {
        if self.is_own() {
            return Ok("this server".to_owned());
        }

        let keys = self.endpoints.keys().await?;
        if keys.len() == 0 {
            return Err("it has no usable key".into());
        }

        let found = format!("{} usable keys", keys.len());
        if !self.introspects() {
            return Ok(found);
        }
        Ok(format!("{found}, introspection at {}", self.endpoints.introspection().await?))
    }

    /// Whether the issuer's keys are cached or can be fetched.
    pub(super) async fn ready(&self) -> bool {
        self.keys.keys().await.is_ok()
    }

    fn user(&self, subject: &str) -> Principal {
        Principal::User { issuer: Arc::clone(&self.name), subject: subject.into() }
    }

    fn machine(&self, client: &str) -> Principal {
        Principal::Machine { issuer: Arc::clone(&self.name), client: client.into() }
    }

    fn identity(&self, principal: Principal, scopes: &str, expires: Option<Timestamp>) -> Identity {
        let scopes = self.hierarchy.expand(Scopes::granted(scopes));
        Identity::new(principal, Grant::Scopes(Arc::new(scopes)), expires)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn keys_are_not_fetched_over_plain_http() {
        let read = |jwks: &str| {
            let document = format!(r#"{{"issuer":"https://a.example","jwks_uri":"{jwks}"}}"#);
            Discovered::read(&Metadata::read(document.as_bytes(), "https://a.example").unwrap())
        };

        assert!(read("https://a.example/jwks").is_ok());
        assert!(read("http://a.example/jwks").unwrap_err().contains("https"));
    }
}
