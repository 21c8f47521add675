//! [`ProviderLogin`]: a provider that needs a login of each caller at another server, as
//! browsers and terminals see it.

use std::sync::Arc;

use async_trait::async_trait;
use larder_oauth::{Identity, Owner};
use larder_runtime::{clock::Clock, random::Random};
use larder_store::vault::Vault;
use serde_json::Value;

/// The parts of a server that the logins of its providers need.
#[derive(Clone)]
pub struct LoginSite {
    /// The vault of the tokens.
    pub vault: Vault,
    /// The URL of this server's endpoint, as browsers reach it, without a slash at its end.
    pub base_url: Arc<str>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random states and verifiers.
    pub random: Random,
}

/// The login that a user is asked to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRequest {
    /// The provider's name.
    pub provider: String,
    /// The server that is logged in to.
    pub server: String,
    /// The caller, as this server knows it.
    pub principal: String,
}

/// A login that has begun.
#[derive(Debug, Clone)]
pub struct LoginRedirect {
    /// The URL that the browser is sent to.
    pub url: String,
    /// The value of the cookie that ties the login to the browser.
    pub cookie: String,
}

/// The reason why a login fails, in words for the user.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoginProblem {
    /// Another attempt needs a new link.
    #[error("{0}")]
    Refused(String),
    /// The response is not that of a login that has begun and is not over.
    #[error("{0}")]
    Unknown(String),
    /// The authorization server registers no clients, for this reason, and none is configured.
    #[error("{0}: set upstreams.auth.client_id")]
    NoClient(String),
    /// A server or the store does not respond.
    #[error("{0}")]
    Unavailable(String),
}

/// The logins at a provider's server, one for each principal.
#[async_trait]
pub trait ProviderLogin: Send + Sync {
    /// The provider's name.
    fn name(&self) -> &str;

    /// The URL of this server's endpoint, as browsers reach it.
    fn base_url(&self) -> &str;

    /// The URL of the page that begins a login of this caller.
    fn link(&self, identity: &Identity) -> String;

    /// Whether there are tokens of this principal.
    async fn is_logged_in(&self, owner: &Owner) -> Result<bool, LoginProblem>;

    /// The login that the ticket of a link requests.
    fn request(&self, ticket: &str) -> Result<LoginRequest, LoginProblem>;

    /// Begins a login, after the user has confirmed it.
    async fn begin(&self, ticket: &str) -> Result<LoginRedirect, LoginProblem>;

    /// Ends a login with the parameters of the callback and the browser's cookie.
    async fn finish(
        &self,
        parameters: Vec<(String, String)>,
        cookie: Option<&str>,
    ) -> Result<(), LoginProblem>;

    /// Forgets a principal's tokens, and revokes them.
    async fn log_out(&self, owner: &Owner) -> Result<(), LoginProblem>;

    /// The metadata of the client (OAuth Client ID Metadata Document).
    fn client_document(&self) -> Value;
}
