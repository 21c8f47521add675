//! [`Tokens`] of a principal, and the requests for them.

use std::time::Duration;

use larder_oauth::{
    Fetcher,
    client::{self, ClientIdentity, CodeGrant, Revocation, TokenEndpoint},
};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Timestamp;
use larder_server::registry::LoginProblem;
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// The longest lifetime of a token that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The errors of RFC 6749 after which another login is necessary.
const REFUSALS: [&str; 5] = [
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
];

/// The source of tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TokenSource {
    pub(super) client: ClientIdentity,
    /// The authorization server.
    #[serde(default)]
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    pub(super) revocation_endpoint: Option<Url>,
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
    pub(super) source: TokenSource,
}

/// Why there are no tokens.
pub(super) enum TokenError {
    /// The code or refresh token is not valid; another login is necessary.
    Refused(String),
    /// The authorization server does not know Larder as a client (any more).
    UnknownClient,
    Unavailable(String),
}

impl From<client::TokenError> for TokenError {
    fn from(error: client::TokenError) -> Self {
        match error {
            client::TokenError::Unavailable(problem) => Self::Unavailable(problem),
            client::TokenError::Refused { code, .. } if code == "invalid_client" => {
                Self::UnknownClient
            }
            client::TokenError::Refused { code, .. } => {
                let is_refusal = REFUSALS.contains(&&*code);
                let problem = quoted(&code);
                if is_refusal { Self::Refused(problem) } else { Self::Unavailable(problem) }
            }
        }
    }
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

impl TokenSource {
    /// The tokens for an authorization code.
    pub(super) async fn redeem(
        self,
        fetcher: &Fetcher,
        grant: &CodeGrant<'_>,
        now: Timestamp,
    ) -> Result<Tokens, TokenError> {
        let response = self.endpoint(fetcher).redeem(grant).await?;
        Ok(self.tokens(response, None, now))
    }

    fn endpoint<'a>(&'a self, fetcher: &'a Fetcher) -> TokenEndpoint<'a> {
        TokenEndpoint {
            fetcher,
            url: &self.token_endpoint,
            client: &self.client,
            resource: Some(&self.resource),
        }
    }

    fn tokens(self, response: client::Tokens, before: Option<&Tokens>, now: Timestamp) -> Tokens {
        let lifetime = response.lifetime.map(|lifetime| lifetime.min(MAX_LIFETIME));
        // The server omits the scopes if it grants those that were requested (RFC 6749, 5.1).
        let scopes = response.scopes.or_else(|| before.map(|before| before.scopes.clone()));

        Tokens {
            access: response.access,
            refresh: response.refresh.or_else(|| before?.refresh.clone()),
            expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
            scopes: scopes.unwrap_or_else(|| self.scopes.clone()),
            source: self,
        }
    }
}

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

        let response = self.source.endpoint(fetcher).refresh(refresh).await?;
        Ok(self.source.clone().tokens(response, Some(self), now))
    }

    /// Revokes the tokens.
    pub(super) async fn revoke(&self, fetcher: &Fetcher) -> Result<(), String> {
        let Some(url) = &self.source.revocation_endpoint else { return Ok(()) };
        let refresh = self.refresh.as_deref().map(Revocation::Refresh);
        for token in refresh.into_iter().chain([Revocation::Access(&self.access)]) {
            let revoked = self.source.client.revoke(fetcher, url, token).await;
            revoked.map_err(|error| match error {
                client::TokenError::Refused { code, .. } => quoted(&code),
                client::TokenError::Unavailable(problem) => problem,
            })?;
        }
        Ok(())
    }
}
