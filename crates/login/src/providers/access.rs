//! [`AccessClient`]: Larder as a client of an authorization server whose access tokens it accepts
//! as bearer tokens.

use std::{fmt, sync::Arc};

use larder_oauth::{Fetcher, IdTokens, Refreshing, Secret, install_crypto, safe_url};
use larder_runtime::clock::Clock;
use url::Url;

use super::{
    ProviderOptionsError,
    discovery::{ProviderMetadata, discovery},
    http::Http,
    invalid,
    oidc::{id_tokens, provider_error},
    token_client::TokenClient,
};
use crate::{AuthorizationRequest, ProviderError, Redemption, ResponseIssuer};

/// An authorization server, and Larder as its client.
#[derive(Debug, Clone)]
pub struct AccessClientOptions {
    /// The issuer, exactly as in its metadata.
    pub issuer: String,
    /// The client ID of Larder there.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
    /// The scopes of the tokens; `openid` is among them.
    pub scopes: Vec<String>,
    /// The resource that the tokens are for: the URL of the endpoint.
    pub resource: String,
    /// The section of the configuration that has all this, for messages.
    pub section: &'static str,
}

/// Gets access tokens of people who log in.
pub struct AccessClient {
    issuer: String,
    client: TokenClient,
    scope: String,
    resource: String,
    http: Http,
    metadata: Arc<Refreshing<ProviderMetadata>>,
    id_tokens: IdTokens,
}

impl AccessClient {
    /// A client. Sends no request.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(
        options: AccessClientOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ProviderOptionsError> {
        let AccessClientOptions { issuer, client_id, client_secret, scopes, resource, section } =
            options;
        safe_url(&issuer).map_err(|problem| invalid("issuer", problem))?;

        install_crypto();
        let fetcher = Fetcher::new().map_err(|error| {
            invalid("issuer", format!("the HTTP client cannot be created: {error}"))
        })?;
        let http = Http::new(fetcher);
        let metadata = discovery(http.fetcher().clone(), &issuer, section, Arc::clone(&clock));
        let id_tokens = id_tokens(&issuer, &client_id, &metadata, &http, clock);

        let client = TokenClient {
            id: client_id,
            secret: client_secret,
            resource: Some(resource.clone()),
            section,
        };

        Ok(Self { issuer, client, scope: scopes.join(" "), resource, http, metadata, id_tokens })
    }

    /// The page at which the person logs in.
    ///
    /// # Errors
    /// The authorization server does not respond.
    pub async fn authorization_url(
        &self,
        request: &AuthorizationRequest<'_>,
    ) -> Result<Url, ProviderError> {
        let endpoint = self.metadata().await?.authorization_endpoint.clone();
        let mut url = request.url(endpoint, &self.client.id, &self.scope);
        url.query_pairs_mut().append_pair("resource", &self.resource);
        Ok(url)
    }

    /// The access token for an authorization code. The ID token beside it shows that the code is
    /// of this login; the caller verifies the access token as any other one.
    ///
    /// # Errors
    /// The code is not valid, or the authorization server does not respond.
    pub async fn redeem(&self, redemption: &Redemption<'_>) -> Result<String, ProviderError> {
        let metadata = self.metadata().await?;
        let tokens = self.client.redeem(&self.http, metadata.endpoint(), redemption).await?;

        let id_token = tokens.id.ok_or_else(|| {
            let problem = format!(
                "the token response has no ID token: allow the client the scope openid \
                 ({}.client_id)",
                self.client.section
            );
            ProviderError::Refused(problem)
        })?;

        // The subjects of the two tokens may differ, so they are not compared: some servers make a
        // subject for each client and each resource.
        let verified = self.id_tokens.verify(&id_token, Some(redemption.nonce)).await;
        verified.map_err(provider_error)?;
        Ok(tokens.access)
    }

    /// The host of the authorization server, for people.
    pub fn host(&self) -> String {
        let url = Url::parse(&self.issuer).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        host.to_owned()
    }

    /// The issuer that the authorization response must name (RFC 9207).
    ///
    /// # Errors
    /// The authorization server does not respond.
    pub async fn issuer(&self) -> Result<ResponseIssuer, ProviderError> {
        let is_required = self.metadata().await?.document.names_issuer;
        Ok(ResponseIssuer { issuer: Some(self.issuer.clone()), is_required })
    }

    /// Connects to the authorization server, for an operator. Says what was found.
    ///
    /// # Errors
    /// What does not work.
    pub async fn check(&self) -> Result<String, String> {
        let metadata = self.metadata().await.map_err(|error| error.to_string())?;
        let client = self.client.check(&self.http, metadata.endpoint()).await?;
        Ok(client.to_owned())
    }

    async fn metadata(&self) -> Result<Arc<ProviderMetadata>, ProviderError> {
        Ok(self.metadata.get().await.map_err(provider_error)?.0)
    }
}

/// Shows no secret.
impl fmt::Debug for AccessClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessClient").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
