//! [`Tokens`] of a principal, and the requests for them.

use std::time::Duration;

use larder_oauth::{Fetcher, TokenRequestError, TokenRequests, client::Verifier, safe_url};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Timestamp;
use larder_server::registry::LoginProblem;
use oauth2::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, PkceCodeVerifier, RedirectUrl,
    RefreshToken, RequestTokenError, Scope, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponse, BasicErrorResponseType, BasicTokenResponse},
};
use serde::{Deserialize, Serialize};

use super::client::ClientIdentity;

/// Where tokens come from.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) client: ClientIdentity,
    /// The authorization server.
    #[serde(default)]
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    /// The protected resource (RFC 8707).
    pub(super) resource: String,
    /// The scopes that are asked for.
    pub(super) scopes: Vec<String>,
}

/// The tokens of a principal for an upstream.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) expires: Option<Timestamp>,
    /// The granted scopes.
    pub(super) scopes: Vec<String>,
    pub(super) source: Source,
}

/// Why there are no tokens.
pub(super) enum TokenError {
    /// The code or refresh token is not valid; another login is necessary.
    Refused(String),
    /// The authorization server does not know Larder as a client (any more).
    UnknownClient,
    Unavailable(String),
}

impl From<TokenError> for LoginProblem {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Refused(problem) => Self::Refused(problem),
            TokenError::UnknownClient => Self::Refused(
                "The authorization server does not accept Larder as a client (invalid_client). Try again; if it stays so, check upstreams.auth.client_id and client_secret.".to_owned(),
            ),
            TokenError::Unavailable(problem) => Self::Unavailable(problem),
        }
    }
}

type Answer = Result<BasicTokenResponse, RequestTokenError<TokenRequestError, BasicErrorResponse>>;

impl Source {
    /// The tokens for an authorization code.
    pub(super) async fn exchange(
        self,
        fetcher: &Fetcher,
        code: &str,
        verifier: &Verifier,
        redirect_uri: &str,
        now: Timestamp,
    ) -> Result<Tokens, TokenError> {
        let redirect_uri = RedirectUrl::new(redirect_uri.to_owned());
        let redirect_uri = redirect_uri.map_err(|error| TokenError::Refused(error.to_string()))?;

        let answer = {
            let client = self.oauth()?.set_redirect_uri(redirect_uri);
            let request = client.exchange_code(AuthorizationCode::new(code.to_owned()));
            let request =
                request.set_pkce_verifier(PkceCodeVerifier::new(verifier.reveal().to_owned()));
            let request = request.add_extra_param("resource", self.resource.as_str());
            request.request_async(&TokenRequests(fetcher)).await
        };

        self.tokens(answer, None, now)
    }

    fn oauth(&self) -> Result<TokenClient, TokenError> {
        let token_url = TokenUrl::new(self.token_endpoint.clone());
        let token_url = token_url.map_err(|error| TokenError::Refused(error.to_string()))?;
        let auth_type =
            if self.client.is_secret_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let client = BasicClient::new(ClientId::new(self.client.id.clone()))
            .set_token_uri(token_url)
            .set_auth_type(auth_type);

        Ok(match &self.client.secret {
            Some(secret) => client.set_client_secret(ClientSecret::new(secret.clone())),
            None => client,
        })
    }

    fn tokens(
        self,
        answer: Answer,
        before: Option<&Tokens>,
        now: Timestamp,
    ) -> Result<Tokens, TokenError> {
        let response = match answer {
            Ok(response) => response,
            // No response is shown, because it may contain a token.
            Err(RequestTokenError::ServerResponse(refused)) => {
                let code = quoted(refused.error().as_ref());
                return Err(match refused.error() {
                    BasicErrorResponseType::InvalidClient => TokenError::UnknownClient,
                    BasicErrorResponseType::Extension(_) => TokenError::Unavailable(code),
                    _ => TokenError::Refused(code),
                });
            }
            Err(RequestTokenError::Request(failure)) => {
                return Err(TokenError::Unavailable(failure.to_string()));
            }
            Err(_) => return Err(TokenError::Unavailable("the response cannot be parsed".into())),
        };

        let refresh = response.refresh_token().map(|token| token.secret().clone());
        let scopes = response
            .scopes()
            .map(|scopes| scopes.iter().map(|scope: &Scope| scope.as_str().to_owned()).collect());
        let lifetime = response.expires_in().map(|lifetime| lifetime.min(MAX_LIFETIME));

        Ok(Tokens {
            access: response.access_token().secret().clone(),
            refresh: refresh.or_else(|| before?.refresh.clone()),
            expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
            // The server omits the scopes if it grants those that were requested (RFC 6749, 5.1).
            scopes: scopes
                .or_else(|| before.map(|before| before.scopes.clone()))
                .unwrap_or_else(|| self.scopes.clone()),
            source: self,
        })
    }
}

/// The longest lifetime of a token that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

type TokenClient = BasicClient<
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointSet,
>;

impl Tokens {
    /// New tokens by the refresh token.
    pub(super) async fn refreshed(
        &self,
        fetcher: &Fetcher,
        now: Timestamp,
    ) -> Result<Self, TokenError> {
        let Some(refresh) = &self.refresh else {
            return Err(TokenError::Refused("there is no refresh token".to_owned()));
        };

        let refresh = RefreshToken::new(refresh.clone());
        let answer = {
            let client = self.source.oauth()?;
            let request = client.exchange_refresh_token(&refresh);
            let request = request.add_extra_param("resource", self.source.resource.as_str());
            request.request_async(&TokenRequests(fetcher)).await
        };

        self.source.clone().tokens(answer, Some(self), now)
    }

    /// Revokes the tokens (RFC 7009). `oauth2` would do so over `https` only.
    pub(super) async fn revoke(&self, fetcher: &Fetcher) -> Result<(), String> {
        let Some(endpoint) = &self.source.revocation_endpoint else { return Ok(()) };
        let url = safe_url(endpoint)?;
        let refresh = self.refresh.as_ref().map(|token| (token, "refresh_token"));

        for (token, hint) in refresh.into_iter().chain([(&self.access, "access_token")]) {
            let pairs = [("token", token.as_str()), ("token_type_hint", hint)];
            let request = self.source.client.form(url.clone(), &pairs);
            match fetcher.send(request).await {
                Ok((200, _)) => {}
                // Self-contained tokens cannot be revoked: they expire (RFC 7009, 2.2.1).
                Ok((400, body)) if is_unsupported(&body) => {}
                Ok((status, _)) => return Err(format!("status {status}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

fn is_unsupported(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }

    serde_json::from_slice::<Refusal>(body)
        .is_ok_and(|refusal| refusal.error == "unsupported_token_type")
}
