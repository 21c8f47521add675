//! Requests to a token endpoint: for a code, by a refresh token, in exchange for another token
//! (RFC 6749, 8693), and to revoke tokens (RFC 7009).

use std::{fmt, time::Duration};

use oauth2::{
    AccessToken, AuthType, AuthorizationCode, Client, ClientId, ClientSecret,
    EmptyExtraTokenFields, ErrorResponse, ErrorResponseType, ExtraTokenFields, PkceCodeVerifier,
    RedirectUrl, RefreshToken, RequestTokenError, RevocationUrl, Scope, StandardErrorResponse,
    StandardRevocableToken, StandardTokenIntrospectionResponse, StandardTokenResponse,
    TokenResponse, TokenUrl,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenType},
};
use serde::{Deserialize, Serialize};
use url::Url;

use super::sender::{GRANT_REFUSALS, SendError, Sender};
use crate::Fetcher;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Larder as one authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The client ID.
    pub id: String,
    /// The client secret; `None` for a public client.
    pub secret: Option<String>,
    /// Whether the secret is sent in the body, not in a header.
    pub is_secret_in_body: bool,
}

/// A token endpoint, and what each request to it has.
#[derive(Debug, Clone, Copy)]
pub struct TokenEndpoint<'a> {
    /// Sends the requests.
    pub fetcher: &'a Fetcher,
    /// The URL of the endpoint.
    pub url: &'a Url,
    /// The client that asks.
    pub client: &'a ClientIdentity,
    /// The resource that access tokens are for (RFC 8707), where the server is asked for one.
    pub resource: Option<&'a str>,
}

/// An authorization code, and what its login began with.
#[derive(Clone, Copy)]
pub struct CodeGrant<'a> {
    /// The code of the authorization response.
    pub code: &'a str,
    /// The PKCE verifier.
    pub code_verifier: &'a str,
    /// The redirect URI of the authorization request.
    pub redirect_uri: &'a str,
}

/// An access token that is exchanged for another one.
#[derive(Clone, Copy)]
pub struct ExchangeGrant<'a> {
    /// The token that is exchanged.
    pub subject_token: &'a str,
    /// The audience of the new token, as the server names it.
    pub audience: Option<&'a str>,
    /// The scopes of the new token; those of the server's choice, if empty.
    pub scopes: &'a [String],
}

/// A token that is revoked.
#[derive(Clone, Copy)]
pub enum Revocation<'a> {
    /// An access token.
    Access(&'a str),
    /// A refresh token.
    Refresh(&'a str),
}

/// The tokens of a response.
pub struct Tokens {
    /// The access token.
    pub access: String,
    /// Whether the access token is a bearer token.
    pub is_bearer: bool,
    /// The refresh token.
    pub refresh: Option<String>,
    /// The ID token (OpenID Connect).
    pub id: Option<String>,
    /// How long the access token is valid.
    pub lifetime: Option<Duration>,
    /// The granted scopes; `None` if they are those of the request.
    pub scopes: Option<Vec<String>>,
}

/// Why there are no tokens. No response is shown, because it may contain a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The server refuses.
    #[error("the authorization server refuses: {code}")]
    Refused {
        /// The error code, as the server sends it.
        code: String,
        /// The description, as the server sends it.
        description: Option<String>,
    },
    /// The server gives no verdict.
    #[error("{0}")]
    Unavailable(String),
}

/// The member that OpenID Connect adds to a token response.
#[derive(Debug, Serialize, Deserialize)]
struct IdTokenField {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdTokenField {}

type OpenIdTokens = StandardTokenResponse<IdTokenField, BasicTokenType>;
type OAuthClient = Client<
    BasicErrorResponse,
    OpenIdTokens,
    StandardTokenIntrospectionResponse<EmptyExtraTokenFields, BasicTokenType>,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;
type ExchangeFailure<T> = RequestTokenError<SendError, StandardErrorResponse<T>>;

impl TokenEndpoint<'_> {
    /// The tokens for an authorization code.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn redeem(&self, grant: &CodeGrant<'_>) -> Result<Tokens, TokenError> {
        let redirect_uri = RedirectUrl::new(grant.redirect_uri.to_owned())
            .map_err(|error| TokenError::Unavailable(format!("the redirect URI: {error}")))?;

        let client = self.client.oauth().set_token_uri(self.token_url());
        let client = client.set_redirect_uri(redirect_uri);
        let request = client
            .exchange_code(AuthorizationCode::new(grant.code.to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(grant.code_verifier.to_owned()));

        let request = self.resource.into_iter().fold(request, |request, resource| {
            request.add_extra_param("resource", resource.to_owned())
        });
        Ok(request.request_async(&self.sender()).await?.into())
    }

    /// New tokens by a refresh token, which stays valid if there is no new one.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn refresh(&self, refresh_token: &str) -> Result<Tokens, TokenError> {
        let token = RefreshToken::new(refresh_token.to_owned());
        let client = self.client.oauth().set_token_uri(self.token_url());
        let request = client.exchange_refresh_token(&token);

        let request = self.resource.into_iter().fold(request, |request, resource| {
            request.add_extra_param("resource", resource.to_owned())
        });
        Ok(request.request_async(&self.sender()).await?.into())
    }

    /// An access token in exchange for another one.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn exchange(&self, grant: &ExchangeGrant<'_>) -> Result<Tokens, TokenError> {
        let client = self.client.oauth().set_token_uri(self.token_url());
        let request = client
            .exchange_client_credentials()
            .add_scopes(grant.scopes.iter().cloned().map(Scope::new))
            .add_extra_param("subject_token", grant.subject_token)
            .add_extra_param("subject_token_type", ACCESS_TOKEN)
            .add_extra_param("requested_token_type", ACCESS_TOKEN);

        let optional = [("audience", grant.audience), ("resource", self.resource)];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let request = optional.fold(request, |request, (name, value)| {
            request.add_extra_param(name, value.to_owned())
        });

        // `oauth2` knows no exchange of tokens, so its request for the client itself becomes one.
        let sender = Sender {
            grant_type: Some(EXCHANGE),
            // Some servers refuse an exchange with 403.
            refusals: Some(400..=499),
            ..self.sender()
        };
        Ok(request.request_async(&sender).await?.into())
    }

    fn token_url(&self) -> TokenUrl {
        TokenUrl::from_url(self.url.clone())
    }

    fn sender(&self) -> Sender<'_> {
        Sender {
            fetcher: self.fetcher,
            url: self.url,
            grant_type: None,
            refusals: Some(GRANT_REFUSALS),
        }
    }
}

impl ClientIdentity {
    /// Revokes a token. Self-contained tokens that the server cannot revoke expire (RFC 7009,
    /// section 2.2.1).
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn revoke(
        &self,
        fetcher: &Fetcher,
        url: &Url,
        token: Revocation<'_>,
    ) -> Result<(), TokenError> {
        let token: StandardRevocableToken = match token {
            Revocation::Access(token) => AccessToken::new(token.to_owned()).into(),
            Revocation::Refresh(token) => RefreshToken::new(token.to_owned()).into(),
        };

        // `oauth2` revokes over `https` only. The sender has the true URL, which may be `http` to
        // loopback.
        let mut https = url.clone();
        let _ = https.set_scheme("https");
        let client = self.oauth().set_revocation_url(RevocationUrl::from_url(https));
        let request = client
            .revoke_token(token)
            .map_err(|error| TokenError::Unavailable(error.to_string()))?;

        let sender = Sender { fetcher, url, grant_type: None, refusals: Some(GRANT_REFUSALS) };
        match request.request_async(&sender).await.map_err(TokenError::from) {
            Err(TokenError::Refused { code, .. }) if code == "unsupported_token_type" => Ok(()),
            revoked => revoked,
        }
    }

    fn oauth(&self) -> OAuthClient {
        let auth_type =
            if self.is_secret_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let client = Client::new(ClientId::new(self.id.clone())).set_auth_type(auth_type);

        match &self.secret {
            Some(secret) => client.set_client_secret(ClientSecret::new(secret.clone())),
            None => client,
        }
    }
}

impl From<OpenIdTokens> for Tokens {
    fn from(response: OpenIdTokens) -> Self {
        let scopes = response
            .scopes()
            .map(|scopes| scopes.iter().map(|scope| scope.as_str().to_owned()).collect());

        Self {
            access: response.access_token().secret().clone(),
            is_bearer: *response.token_type() == BasicTokenType::Bearer,
            refresh: response.refresh_token().map(|token| token.secret().clone()),
            id: response.extra_fields().id_token.clone(),
            lifetime: response.expires_in(),
            scopes,
        }
    }
}

impl<T: ErrorResponseType + AsRef<str>> From<ExchangeFailure<T>> for TokenError
where
    StandardErrorResponse<T>: ErrorResponse,
{
    fn from(failure: ExchangeFailure<T>) -> Self {
        match failure {
            RequestTokenError::ServerResponse(refused) => Self::Refused {
                code: refused.error().as_ref().to_owned(),
                description: refused.error_description().cloned(),
            },
            RequestTokenError::Request(error) => Self::Unavailable(error.to_string()),
            _ => Self::Unavailable("the token response cannot be parsed".to_owned()),
        }
    }
}

/// Shows no secret.
impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Shows no token.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
