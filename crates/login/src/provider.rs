//! [`IdentityProvider`]: who logs users in for Larder.

use std::fmt;

use async_trait::async_trait;
use larder_oauth::client::{AuthorizationRequest, CodeGrant, ResponseIssuer};
use serde::{Deserialize, Serialize};
use url::Url;

use super::Person;

/// An identity provider, towards which Larder is an OAuth client. Dropping a future of it cancels
/// the request.
#[async_trait]
pub trait IdentityProvider: fmt::Debug + Send + Sync + 'static {
    /// The page at which the user logs in. The provider sends the browser back to the redirect
    /// URI with a code and the state.
    async fn authorization_url(
        &self,
        request: &AuthorizationRequest<'_>,
    ) -> Result<Url, ProviderError>;

    /// The user of an authorization code.
    async fn redeem(&self, redemption: &Redemption<'_>) -> Result<Authenticated, ProviderError>;

    /// New tokens for the same user later. The provider may have replaced those of the grant, so
    /// the caller stores the new ones before it asks for the user.
    async fn renew(&self, grant: &ProviderGrant) -> Result<Renewed, ProviderError>;

    /// The user of renewed tokens, as far as the provider still vouches for them.
    async fn person(&self, renewed: &Renewed) -> Result<Person, ProviderError>;

    /// The issuer that the provider's authorization response must name (RFC 9207), if it names
    /// one. A response that names another one is refused.
    async fn issuer(&self) -> Result<ResponseIssuer, ProviderError>;

    /// Connects to the provider, for an operator. Says what was found.
    ///
    /// # Errors
    /// What does not work.
    async fn check(&self) -> Result<String, String> {
        self.issuer().await.map(|_| "it responds".to_owned()).map_err(|error| error.to_string())
    }
}

/// An authorization code of the provider, with what its login began with.
#[derive(Clone, Copy)]
pub struct Redemption<'a> {
    /// The code of the authorization response.
    pub code: &'a str,
    /// The PKCE verifier.
    pub code_verifier: &'a str,
    /// The nonce that the ID token must have.
    pub nonce: &'a str,
    /// The redirect URI of the request.
    pub redirect_uri: &'a str,
}

impl<'a> Redemption<'a> {
    /// The part that the token endpoint gets.
    pub(super) fn grant(&self) -> CodeGrant<'a> {
        let Self { code, code_verifier, redirect_uri, .. } = *self;
        CodeGrant { code, code_verifier, redirect_uri }
    }
}

/// The person who logged in.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The user.
    pub person: Person,
    /// By what the user is looked up later. `None` if the provider gave nothing: then a login
    /// lasts only as long as Larder's own tokens allow.
    pub grant: Option<ProviderGrant>,
}

/// The provider's tokens for a user. Sealed at rest, and sent to nobody but the provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderGrant {
    /// The access token, where it is what later questions are asked with.
    pub access_token: Option<String>,
    /// The refresh token.
    pub refresh_token: Option<String>,
}

/// The provider's new tokens for a user.
#[derive(Clone)]
pub struct Renewed {
    /// By what the user is looked up the next time.
    pub grant: ProviderGrant,
    /// The access token, with which the provider is asked for the user.
    pub access_token: String,
    /// The ID token, if the provider sends a new one.
    pub id_token: Option<String>,
}

/// Why the provider vouches for nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider says no: the code or grant is not valid, the user is disabled, or what it
    /// answers breaks the rules. For the log; users read a shorter text.
    #[error("the identity provider refuses: {0}")]
    Refused(String),
    /// The provider does not answer, or fails. Says nothing about the user.
    #[error("the identity provider is not available: {0}")]
    Unavailable(String),
}

/// Shows no token.
impl fmt::Debug for ProviderGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderGrant").finish_non_exhaustive()
    }
}

/// Shows no token.
impl fmt::Debug for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").finish_non_exhaustive()
    }
}

/// Shows no code.
impl fmt::Debug for Redemption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redemption").finish_non_exhaustive()
    }
}
