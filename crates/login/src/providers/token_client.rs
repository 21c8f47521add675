//! Larder as a client of a provider's token endpoint.

use larder_oauth::{
    Secret,
    client::{ClientIdentity, CodeGrant, TokenEndpoint, TokenError, Tokens},
};
use larder_protocol::quote::quoted;
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

/// The token endpoint of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProviderEndpoint<'a> {
    pub(super) url: &'a Url,
    /// Whether the client secret is sent in the body, not in a header.
    pub(super) is_secret_in_body: bool,
}

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
        endpoint: ProviderEndpoint<'_>,
        redemption: &Redemption<'_>,
    ) -> Result<Tokens, ProviderError> {
        let client = self.identity(endpoint);
        let endpoint = self.endpoint(http, endpoint, &client);
        endpoint.redeem(&redemption.grant()).await.map_err(|error| self.problem(error))
    }

    /// New tokens by a refresh token, which stays valid if there is no new one.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub(super) async fn refresh(
        &self,
        http: &Http,
        endpoint: ProviderEndpoint<'_>,
        refresh: &str,
    ) -> Result<Tokens, ProviderError> {
        let client = self.identity(endpoint);
        let endpoint = self.endpoint(http, endpoint, &client);
        endpoint.refresh(refresh).await.map_err(|error| self.problem(error))
    }

    /// Tries the client ID and the secret with a code that cannot be valid. Returns what the
    /// provider says of them.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) async fn check(
        &self,
        http: &Http,
        endpoint: ProviderEndpoint<'_>,
    ) -> Result<&'static str, String> {
        let grant = CodeGrant {
            code: "larder-config-check",
            code_verifier: "larder-config-check-larder-config-check-1",
            redirect_uri: "https://localhost/larder-config-check",
        };

        let client = self.identity(endpoint);
        let code = match self.endpoint(http, endpoint, &client).redeem(&grant).await {
            Ok(_) => return Err(format!("{}: it accepts any code", endpoint.url)),
            Err(TokenError::Unavailable(text)) => return Err(format!("{}: {text}", endpoint.url)),
            Err(TokenError::Refused { code, .. }) => code,
        };

        if CLIENT_ERRORS.contains(&&*code) {
            return Err(self.client_problem(&code));
        }

        // Other errors may come before the provider looks at the secret.
        let is_accepted = ["invalid_grant", "bad_verification_code"].contains(&&*code);
        Ok(if is_accepted { "the client is accepted" } else { "the client cannot be checked" })
    }

    fn identity(&self, endpoint: ProviderEndpoint<'_>) -> ClientIdentity {
        ClientIdentity {
            id: self.id.clone(),
            secret: Some(self.secret.reveal().to_owned()),
            is_secret_in_body: endpoint.is_secret_in_body,
        }
    }

    fn endpoint<'a>(
        &'a self,
        http: &'a Http,
        endpoint: ProviderEndpoint<'a>,
        client: &'a ClientIdentity,
    ) -> TokenEndpoint<'a> {
        TokenEndpoint {
            fetcher: http.fetcher(),
            url: endpoint.url,
            client,
            resource: self.resource.as_deref(),
        }
    }

    fn problem(&self, error: TokenError) -> ProviderError {
        let (code, description) = match error {
            TokenError::Refused { code, description } => (code, description),
            TokenError::Unavailable(text) => return ProviderError::Unavailable(text),
        };

        let text = match description {
            _ if CLIENT_ERRORS.contains(&&*code) => self.client_problem(&code),
            Some(description) => format!("{}: {}", quoted(&code), quoted(&description)),
            None => quoted(&code),
        };
        if REFUSALS.contains(&&*code) {
            ProviderError::Refused(text)
        } else {
            ProviderError::Unavailable(text)
        }
    }

    fn client_problem(&self, code: &str) -> String {
        let section = self.section;
        format!("{} ({section}.client_id, {section}.client_secret_file)", quoted(code))
    }
}
