//! `[upstreams.exchange]`: tokens of callers are exchanged for those of an upstream.

use std::path::PathBuf;

use larder_gateway::{TokenExchangeSettings, TokenServer};
use larder_oauth::check_url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, secret::client_secret, upstreams::expand_secret};

const SECTION: &str = "upstreams.exchange";

/// `exchange` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamExchangeConfig {
    /// The token endpoint of the authorization server, which must know the tokens of callers. Set
    /// either this or the issuer.
    #[serde(default)]
    pub token_url: Option<String>,
    /// The issuer URL of the authorization server, whose metadata name its token endpoint.
    #[serde(default)]
    pub issuer: Option<String>,

    /// Larder's client ID there.
    pub client_id: String,
    /// Secret of that client. ${NAME} is replaced as in the environment. Set either this or the
    /// file.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// File with the secret. It is read again when it changes.
    #[serde(default)]
    pub client_secret_file: Option<PathBuf>,

    /// The service that the new token is for, by its name at the authorization server.
    #[serde(default)]
    pub audience: Option<String>,
    /// The service that the new token is for, by its URL.
    #[serde(default)]
    pub resource: Option<String>,
    /// Scopes to ask for. By default the authorization server decides.
    #[serde(default)]
    pub scopes: Vec<String>,

    /// The most exchanged tokens that are kept in memory. Further ones replace those that are used
    /// least.
    #[serde(default = "max_tokens")]
    pub max_tokens: usize,
}

fn max_tokens() -> usize {
    10_000
}

impl UpstreamExchangeConfig {
    /// The settings, checked, with the secret.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn settings(&self) -> Result<TokenExchangeSettings, ConfigError> {
        let problem = |setting: &str, problem: &str| {
            Err(ConfigError::new(&format!("{SECTION}.{setting}"), problem))
        };

        for (setting, url) in [("token_url", &self.token_url), ("issuer", &self.issuer)] {
            if let Some(Err(why)) = url.as_deref().map(check_url) {
                return problem(setting, why);
            }
        }

        let server = match (&self.token_url, &self.issuer) {
            (Some(url), None) => TokenServer::Endpoint(url.clone()),
            (None, Some(issuer)) => TokenServer::Issuer(issuer.clone()),
            _ => return problem("token_url", "set either this or issuer"),
        };

        if self.client_id.is_empty() {
            return problem("client_id", "it must not be empty");
        }
        if self.max_tokens == 0 {
            return problem("max_tokens", "it must be more than 0");
        }

        let client_secret = match (&self.client_secret, &self.client_secret_file) {
            (Some(value), None) => expand_secret(&format!("{SECTION}.client_secret"), value)?,
            (None, Some(file)) => client_secret(SECTION, Some(file), None)?.reveal().to_owned(),
            _ => return problem("client_secret", "set either this or client_secret_file"),
        };

        if client_secret.is_empty() {
            return problem("client_secret", "it must not be empty");
        }

        Ok(TokenExchangeSettings {
            server,
            client_id: self.client_id.clone(),
            client_secret,
            audience: self.audience.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
            max_tokens: self.max_tokens,
        })
    }
}
