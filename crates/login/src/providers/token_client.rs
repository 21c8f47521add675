//! Larder as a client of a provider's token endpoint.

use larder_oauth::{Secret, TokenRequestError, TokenRequests};
use larder_protocol::quote::quoted;
use oauth2::{
    AuthType, AuthorizationCode, Client, ClientId, ClientSecret, EmptyExtraTokenFields,
    EndpointNotSet, EndpointSet, ExtraTokenFields, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, StandardRevocableToken, StandardTokenIntrospectionResponse,
    StandardTokenResponse, TokenResponse, TokenUrl,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenType},
};
use serde::{Deserialize, Serialize};
use url::Url;

use super::http::Http;
use crate::{ProviderError, Redemption};

/// The credentials of Larder at a provider.
#[derive(Debug, Clone)]
pub(super) struct TokenClient {
    pub(super) id: String,
    pub(super) secret: Secret,
    /// The resource that access tokens are for (RFC 8707), where the provider is asked for one.
    pub(super) resource: Option<String>,
    /// The section of the configuration that has the client, for messages.
    pub(super) section: &'static str,
}

/// A token endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenEndpoint<'a> {
    pub(super) url: &'a Url,
    /// Whether the client secret is sent in the body, not in a header.
    pub(super) is_secret_in_body: bool,
}

/// The tokens of a user.
pub(super) struct UserTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) id: Option<String>,
}

/// What OpenID Connect adds to a token response.
#[derive(Debug, Serialize, Deserialize)]
struct IdTokenField {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdTokenField {}

type Response = StandardTokenResponse<IdTokenField, BasicTokenType>;
type Error = RequestTokenError<TokenRequestError, BasicErrorResponse>;
type OAuthClient = Client<
    BasicErrorResponse,
    Response,
    StandardTokenIntrospectionResponse<EmptyExtraTokenFields, BasicTokenType>,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// The errors that concern the code, the refresh token or the user: those of RFC 6749, OpenID
/// Connect and GitHub. All others concern the client or the provider.
const REFUSALS: [&str; 9] = [
    "invalid_grant",
    "access_denied",
    "login_required",
    "interaction_required",
    "consent_required",
    "account_selection_required",
    "bad_verification_code",
    "bad_refresh_token",
    "unverified_user_email",
];

/// The errors that say that client ID or secret are wrong.
const CLIENT_ERRORS: [&str; 3] =
    ["invalid_client", "unauthorized_client", "incorrect_client_credentials"];

impl TokenClient {
    /// The tokens for an authorization code.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub(super) async fn redeem(
        &self,
        http: &Http,
        endpoint: TokenEndpoint<'_>,
        redemption: &Redemption<'_>,
    ) -> Result<UserTokens, ProviderError> {
        Ok(tokens(&self.exchange(http, endpoint, redemption).await.map_err(|e| self.problem(&e))?))
    }

    /// New tokens by a refresh token, which stays valid if there is no new one.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub(super) async fn refresh(
        &self,
        http: &Http,
        endpoint: TokenEndpoint<'_>,
        refresh: &str,
    ) -> Result<UserTokens, ProviderError> {
        let token = RefreshToken::new(refresh.to_owned());
        let client = self.oauth(endpoint);
        let request = client.exchange_refresh_token(&token);
        let response = request.request_async(&TokenRequests(http.fetcher())).await;
        Ok(tokens(&response.map_err(|error| self.problem(&error))?))
    }

    /// Tries the client ID and the secret with a code that cannot be valid. Returns what the
    /// provider says of them.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) async fn check(
        &self,
        http: &Http,
        endpoint: TokenEndpoint<'_>,
    ) -> Result<&'static str, String> {
        let redemption = Redemption {
            code: "larder-config-check",
            code_verifier: "larder-config-check-larder-config-check-1",
            nonce: "",
            redirect_uri: "https://localhost/larder-config-check",
        };

        let error = self.exchange(http, endpoint, &redemption).await.err();
        let Some(RequestTokenError::ServerResponse(refused)) = &error else {
            return Err(match error.as_ref().map(|error| self.problem(error)) {
                Some(ProviderError::Unavailable(text) | ProviderError::Refused(text)) => {
                    format!("{}: {text}", endpoint.url)
                }
                None => format!("{}: it accepts any code", endpoint.url),
            });
        };

        let code = refused.error().as_ref();
        if CLIENT_ERRORS.contains(&code) {
            return Err(self.client_problem(code));
        }

        // Other errors may come before the provider looks at the secret.
        let is_accepted = ["invalid_grant", "bad_verification_code"].contains(&code);
        Ok(if is_accepted { "the client is accepted" } else { "the client cannot be checked" })
    }

    async fn exchange(
        &self,
        http: &Http,
        endpoint: TokenEndpoint<'_>,
        redemption: &Redemption<'_>,
    ) -> Result<Response, Error> {
        let redirect_uri = RedirectUrl::new(redemption.redirect_uri.to_owned())
            .map_err(|error| RequestTokenError::Other(error.to_string()))?;
        let client = self.oauth(endpoint).set_redirect_uri(redirect_uri);

        let mut request = client
            .exchange_code(AuthorizationCode::new(redemption.code.to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(redemption.code_verifier.to_owned()));
        if let Some(resource) = &self.resource {
            request = request.add_extra_param("resource", resource);
        }

        request.request_async(&TokenRequests(http.fetcher())).await
    }

    fn oauth(&self, endpoint: TokenEndpoint<'_>) -> OAuthClient {
        let auth_type =
            if endpoint.is_secret_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };

        Client::new(ClientId::new(self.id.clone()))
            .set_client_secret(ClientSecret::new(self.secret.reveal().to_owned()))
            .set_token_uri(TokenUrl::from_url(endpoint.url.clone()))
            .set_auth_type(auth_type)
    }

    /// No response is shown, because it may contain a token.
    fn problem(&self, error: &Error) -> ProviderError {
        match error {
            RequestTokenError::ServerResponse(refused) => {
                let code = refused.error().as_ref();
                let is_refusal = REFUSALS.contains(&code);
                let text = match refused.error_description() {
                    _ if CLIENT_ERRORS.contains(&code) => self.client_problem(code),
                    Some(description) => format!("{}: {}", quoted(code), quoted(description)),
                    None => quoted(code),
                };

                if is_refusal {
                    ProviderError::Refused(text)
                } else {
                    ProviderError::Unavailable(text)
                }
            }
            RequestTokenError::Request(failure) => ProviderError::Unavailable(failure.to_string()),
            _ => ProviderError::Unavailable("the token response cannot be parsed".to_owned()),
        }
    }

    fn client_problem(&self, code: &str) -> String {
        let section = self.section;
        format!("{} ({section}.client_id, {section}.client_secret_file)", quoted(code))
    }
}

fn tokens(response: &Response) -> UserTokens {
    UserTokens {
        access: response.access_token().secret().clone(),
        refresh: response.refresh_token().map(|token| token.secret().clone()),
        id: response.extra_fields().id_token.clone(),
    }
}
