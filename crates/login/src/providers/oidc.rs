//! OpenID Connect providers.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use larder_oauth::{AuthError, IdTokens, Refreshing};
use larder_runtime::clock::Clock;
use url::Url;

use super::{
    ProviderKind, ProviderOptions, SECTION,
    claims::{Claims, refused},
    discovery::{ProviderMetadata, discovery},
    entra::Entra,
    google::Google,
    http::{Http, without_query},
    token_client::{ProviderEndpoint, TokenClient},
};
use crate::{
    Authenticated, AuthorizationRequest, IdentityProvider, Person, ProviderError, ProviderGrant,
    Redemption, Renewed, ResponseIssuer,
};

/// An OpenID Connect provider.
#[derive(Debug)]
pub(super) struct Oidc {
    issuer: String,
    client: TokenClient,
    scopes: Vec<String>,
    groups_claim: String,
    preset: Preset,
    http: Http,
    metadata: Arc<Refreshing<ProviderMetadata>>,
    id_tokens: IdTokens,
}

#[derive(Debug)]
enum Preset {
    Any,
    Google(Google),
    Entra(Entra),
}

impl Oidc {
    pub(super) fn new(options: ProviderOptions, http: Http, clock: Arc<dyn Clock>) -> Self {
        let issuer = options.issuer();
        let metadata = discovery(http.fetcher().clone(), &issuer, SECTION, Arc::clone(&clock));
        let id_tokens = id_tokens(&issuer, &options.client_id, &metadata, &http, clock);
        let client = options.token_client();

        let (preset, default_scopes): (_, &[&str]) = match options.kind {
            ProviderKind::Google => {
                let google = Google { hosted_domain: options.hosted_domain };
                (Preset::Google(google), &["openid", "profile", "email"])
            }
            ProviderKind::Entra => {
                let entra = Entra { tenant: options.tenant, graph: options.api_url };
                // Graph lists the groups of a user who has more than a token can list.
                (Preset::Entra(entra), &["openid", "profile", "email", "User.Read"])
            }
            ProviderKind::Oidc | ProviderKind::GitHub => {
                (Preset::Any, &["openid", "profile", "email"])
            }
        };

        let mut scopes = options.scopes;
        if scopes.is_empty() {
            scopes = default_scopes.iter().map(|&scope| scope.to_owned()).collect();
        }
        let groups_claim = options.groups_claim.unwrap_or_else(|| "groups".to_owned());

        Self { issuer, client, scopes, groups_claim, preset, http, metadata, id_tokens }
    }

    async fn metadata(&self) -> Result<Arc<ProviderMetadata>, ProviderError> {
        Ok(self.metadata.get().await.map_err(provider_error)?.0)
    }

    /// The scopes to ask for, with the one for a refresh token where the provider knows it.
    fn scopes(&self, metadata: &ProviderMetadata) -> Vec<&str> {
        const OFFLINE: &str = "offline_access";

        let mut scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let is_known = metadata.document.scopes_supported.iter().any(|scope| scope == OFFLINE);
        if is_known && !scopes.contains(&OFFLINE) {
            scopes.push(OFFLINE);
        }
        scopes
    }

    /// The user of the tokens. `id_claims` are those of the ID token.
    async fn user(
        &self,
        id_claims: Option<Claims>,
        access_token: &str,
        metadata: &ProviderMetadata,
    ) -> Result<Person, ProviderError> {
        let is_complete = |claims: &Claims| match self.preset {
            Preset::Any => claims.has("email") && claims.has(&self.groups_claim),
            Preset::Google(_) | Preset::Entra(_) => true,
        };

        let claims = match (id_claims, &metadata.userinfo_endpoint) {
            (Some(claims), _) if is_complete(&claims) => claims,
            (Some(claims), None) => claims,
            (Some(mut claims), Some(url)) => {
                claims.complete(self.userinfo(url, access_token).await?)?;
                claims
            }
            (None, Some(url)) => self.userinfo(url, access_token).await?,
            (None, None) => return Err(refused("the provider sends no ID token")),
        };

        let (email, email_verified, organization) = match &self.preset {
            Preset::Any => (claims.email("email"), claims.is_true("email_verified"), None),
            Preset::Google(google) => (
                claims.email("email"),
                Google::is_email_verified(&claims),
                google.organization(&claims)?,
            ),
            Preset::Entra(entra) => {
                let organization = entra.organization(&claims)?;
                let (email, is_verified) = Entra::email(&claims);
                (email, is_verified, organization)
            }
        };

        let groups = match &self.preset {
            Preset::Entra(entra) => {
                let claim = &self.groups_claim;
                entra.groups(&claims, claim, access_token, metadata, &self.http).await?
            }
            Preset::Any | Preset::Google(_) => claims.groups(&self.groups_claim)?,
        };

        Ok(Person {
            issuer: self.issuer.clone(),
            subject: claims.subject()?,
            email,
            email_verified,
            name: claims.name(),
            groups,
            organization,
        })
    }

    async fn userinfo(&self, url: &Url, access_token: &str) -> Result<Claims, ProviderError> {
        let response = self.http.get(url, access_token, "application/json").await?;
        match response.body {
            serde_json::Value::Object(claims) if response.status == 200 => Ok(Claims(claims)),
            _ => {
                let url = without_query(url);
                let status = response.status;
                let problem = format!("{url} responds with status {status}, or not with JSON");
                Err(ProviderError::Refused(problem))
            }
        }
    }

    async fn id_claims(
        &self,
        token: Option<&str>,
        nonce: Option<&str>,
    ) -> Result<Option<Claims>, ProviderError> {
        let Some(token) = token else { return Ok(None) };
        self.id_tokens.verify(token, nonce).await.map(Claims).map(Some).map_err(provider_error)
    }
}

/// The ID tokens for a client, with the keys that the metadata name.
pub(super) fn id_tokens(
    issuer: &str,
    client: &str,
    metadata: &Arc<Refreshing<ProviderMetadata>>,
    http: &Http,
    clock: Arc<dyn Clock>,
) -> IdTokens {
    let metadata = Arc::clone(metadata);
    let keys_url = move || {
        let metadata = Arc::clone(&metadata);
        let url = async move {
            let (metadata, _) = metadata.get().await.map_err(|e| e.to_string())?;
            Ok(metadata.jwks_uri.clone())
        };
        url.boxed()
    };

    IdTokens::new(issuer, client, http.fetcher().clone(), keys_url, clock)
}

fn grant(refresh_token: String) -> ProviderGrant {
    ProviderGrant { access_token: None, refresh_token: Some(refresh_token) }
}

#[async_trait]
impl IdentityProvider for Oidc {
    async fn authorization_url(
        &self,
        request: &AuthorizationRequest<'_>,
    ) -> Result<Url, ProviderError> {
        let metadata = self.metadata().await?;
        let scopes = self.scopes(&metadata);
        let endpoint = metadata.authorization_endpoint.clone();

        let mut url = request.url(endpoint, &self.client.id, &scopes.join(" "));

        match &self.preset {
            // OpenID Connect Core 1.0, section 11: without a consent the scope may be ignored.
            Preset::Any if scopes.contains(&"offline_access") => {
                url.query_pairs_mut().append_pair("prompt", "consent");
            }
            Preset::Google(google) => {
                url.query_pairs_mut().extend_pairs(google.parameters());
            }
            Preset::Any | Preset::Entra(_) => {}
        }

        Ok(url)
    }

    async fn redeem(&self, redemption: &Redemption<'_>) -> Result<Authenticated, ProviderError> {
        let metadata = self.metadata().await?;
        let tokens = self.client.redeem(&self.http, metadata.endpoint(), redemption).await?;

        let claims = self.id_claims(tokens.id.as_deref(), Some(redemption.nonce)).await?;
        let claims = claims.ok_or_else(|| refused("the token response has no ID token"))?;
        let person = self.user(Some(claims), &tokens.access, &metadata).await?;

        if tokens.refresh.is_none() {
            tracing::warn!(
                "the provider gives no refresh token, so it is never asked again whether a user \
                 may log in: ask for the scope that gives one in auth.login.scopes"
            );
        }

        Ok(Authenticated { person, grant: tokens.refresh.map(grant) })
    }

    async fn renew(&self, before: &ProviderGrant) -> Result<Renewed, ProviderError> {
        let Some(refresh) = &before.refresh_token else {
            return Err(refused("there is no refresh token of the provider"));
        };

        let metadata = self.metadata().await?;
        let tokens = self.client.refresh(&self.http, metadata.endpoint(), refresh).await?;
        let grant = tokens.refresh.map_or_else(|| before.clone(), grant);
        Ok(Renewed { grant, access_token: tokens.access, id_token: tokens.id })
    }

    async fn person(&self, renewed: &Renewed) -> Result<Person, ProviderError> {
        let metadata = self.metadata().await?;
        let claims = self.id_claims(renewed.id_token.as_deref(), None).await?;
        self.user(claims, &renewed.access_token, &metadata).await
    }

    async fn issuer(&self) -> Result<ResponseIssuer, ProviderError> {
        let is_required = self.metadata().await?.document.names_issuer;
        Ok(ResponseIssuer { issuer: Some(self.issuer.clone()), is_required })
    }

    async fn check(&self) -> Result<String, String> {
        let metadata = self.metadata().await.map_err(|error| error.to_string())?;
        let keys = self.id_tokens.usable_keys().await.map_err(|error| error.to_string())?;
        if keys == 0 {
            return Err(format!("{} has no usable key", metadata.jwks_uri));
        }

        let client = self.client.check(&self.http, metadata.endpoint()).await?;
        Ok(format!("{keys} usable keys, {client}"))
    }
}

impl ProviderMetadata {
    pub(super) fn endpoint(&self) -> ProviderEndpoint<'_> {
        ProviderEndpoint {
            url: &self.token_endpoint,
            is_secret_in_body: self.document.is_secret_in_body(),
        }
    }
}

pub(super) fn provider_error(error: AuthError) -> ProviderError {
    match error {
        AuthError::Unavailable { reason, .. } => ProviderError::Unavailable(reason),
        refused => ProviderError::Refused(format!("the ID token is not accepted: {refused}")),
    }
}
