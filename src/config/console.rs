//! `[console]`: pages for people on the server.

use std::collections::BTreeSet;
use std::path::PathBuf;

use larder_login::AccessClientOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuthConfig, AuthMode, ConfigError, ServerConfig, server::is_within};
use super::{PublicUrl, secret::client_secret};

/// The places of one caller are read and written as a whole, at each login.
const MAX_SESSIONS: u16 = 256;

/// `[console]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Serve the console: pages at which people see, search, share and delete what they have
    /// stored. See docs/console.md.
    pub enabled: bool,
    /// The path of its pages, here and at `server.public_url`.
    pub path: String,
    /// How long a login lasts at most, in seconds. It ends with its token.
    pub session: u64,
    /// Sessions of one caller at a time, at most 256. A login beyond it ends the oldest. They count
    /// towards the quota of the caller.
    pub sessions_per_principal: u16,
    /// The login at an authorization server, besides that by a token.
    pub oidc: Option<ConsoleOidcConfig>,
}

/// `[console.oidc]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleOidcConfig {
    /// Issuer at which people log in: one of auth.issuers.
    pub issuer: String,
    /// Client ID of Larder there. Its redirect URI there is the path of the console at
    /// `server.public_url`, followed by /callback.
    pub client_id: String,
    /// File with the client secret. Set either this or `client_secret_env`.
    pub client_secret_file: Option<PathBuf>,
    /// Name of the environment variable with the client secret.
    pub client_secret_env: Option<String>,
    /// Scopes of the access token, openid among them. When empty openid and all scopes of
    /// `auth.required_scopes` and auth.scopes.
    pub scopes: Vec<String>,
}

impl ConsoleConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(
        &self,
        server: &ServerConfig,
        auth: &AuthConfig,
    ) -> Result<(), ConfigError> {
        ConfigError::require_positive("console.session", self.session)?;
        if !(1..=MAX_SESSIONS).contains(&self.sessions_per_principal) {
            let problem = format!("it must be between 1 and {MAX_SESSIONS}");
            return Err(ConfigError::new("console.sessions_per_principal", problem));
        }

        let is_plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if !self.path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_plain)) {
            let problem = "it must begin with a slash and have letters, digits, - and _ between slashes, such as /console";
            return Err(ConfigError::new("console.path", problem));
        }

        if !self.enabled {
            return Ok(());
        }

        let taken = [server.path.as_str(), "/resources", "/content", "/healthz", "/readyz"];
        let overlaps = |taken: &&str| is_within(&self.path, taken) || is_within(taken, &self.path);
        if let Some(taken) = taken.iter().find(|taken| overlaps(taken)) {
            let problem = format!("{taken} has another use on this server");
            return Err(ConfigError::new("console.path", problem));
        }

        if !server.max_version().is_modern() {
            let problem = "the console calls tools by 2026-07-28: allow it here, or set console.enabled = false";
            return Err(ConfigError::new("server.max_version", problem));
        }

        self.oidc.as_ref().map_or(Ok(()), |oidc| oidc.check(auth))
    }
}

impl ConsoleOidcConfig {
    /// # Errors
    /// Names the setting.
    fn check(&self, auth: &AuthConfig) -> Result<(), ConfigError> {
        let invalid = |setting: &str, problem: &str| {
            Err(ConfigError::new(&format!("console.oidc.{setting}"), problem))
        };

        if auth.mode != AuthMode::OAuth {
            let problem = "the console logs people in with access tokens of an issuer: set auth.mode = \"oauth\", or remove [console.oidc]";
            return invalid("issuer", problem);
        }
        if !auth.issuers.iter().any(|issuer| issuer.issuer == self.issuer) {
            return invalid("issuer", "it must be one of auth.issuers, exactly as it is there");
        }
        if self.client_id.trim().is_empty() {
            return invalid("client_id", "it is missing");
        }
        if self.client_secret_file.is_some() == self.client_secret_env.is_some() {
            return invalid("client_secret_file", "set either this or client_secret_env");
        }
        if !self.scopes.is_empty() && !self.scopes.iter().any(|scope| scope == "openid") {
            return invalid("scopes", "\"openid\" must be among them");
        }

        Ok(())
    }

    /// The authorization server and its client, with the secret.
    ///
    /// # Errors
    /// The secret cannot be read.
    pub(crate) fn client(
        &self,
        auth: &AuthConfig,
        public_url: &PublicUrl,
    ) -> Result<AccessClientOptions, ConfigError> {
        const SECTION: &str = "console.oidc";
        let file = self.client_secret_file.as_deref();
        let env = self.client_secret_env.as_deref();

        let mut scopes = self.scopes.clone();
        if scopes.is_empty() {
            let named = auth.required_scopes.iter().chain(auth.scopes.values().flatten());
            let named: BTreeSet<_> = named.cloned().collect();
            scopes.push("openid".to_owned());
            scopes.extend(named);
        }

        Ok(AccessClientOptions {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: client_secret(SECTION, file, env)?,
            scopes,
            resource: public_url.as_str().to_owned(),
            section: SECTION,
        })
    }
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            path: "/console".to_owned(),
            session: 8 * 60 * 60,
            sessions_per_principal: 16,
            oidc: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::IssuerConfig;

    #[test]
    fn the_login_is_at_an_issuer_whose_tokens_are_accepted() {
        let auth = AuthConfig {
            mode: AuthMode::OAuth,
            issuers: vec![IssuerConfig {
                issuer: "https://a.example".into(),
                ..Default::default()
            }],
            ..Default::default()
        };

        let valid = ConsoleOidcConfig {
            issuer: "https://a.example".into(),
            client_id: "larder".into(),
            client_secret_env: Some("SECRET".into()),
            ..Default::default()
        };

        assert!(valid.check(&auth).is_ok());

        let refused = |setting: &str, auth: &AuthConfig, change: fn(&mut ConsoleOidcConfig)| {
            let mut config = valid.clone();
            change(&mut config);
            let error = config.check(auth).unwrap_err().to_string();
            assert!(error.starts_with(&format!("console.oidc.{setting}: ")), "{error}");
        };

        refused("issuer", &AuthConfig::default(), |_| {});
        refused("issuer", &auth, |config| config.issuer.push('/'));
        refused("client_id", &auth, |config| config.client_id.clear());
        refused("client_secret_file", &auth, |config| config.client_secret_env = None);
        refused("client_secret_file", &auth, |config| config.client_secret_file = Some("x".into()));
        refused("scopes", &auth, |config| config.scopes = vec!["mcp:read".into()]);
    }

    #[test]
    fn the_sessions_of_a_caller_are_bounded() {
        for (sessions, is_valid) in [(0, false), (1, true), (256, true), (257, false)] {
            let config =
                ConsoleConfig { sessions_per_principal: sessions, ..ConsoleConfig::default() };
            let checked = config.check(&ServerConfig::default(), &AuthConfig::default());
            assert_eq!(checked.is_ok(), is_valid, "{sessions}");
            if let Err(error) = checked {
                assert!(error.to_string().starts_with("console.sessions_per_principal: "));
            }
        }
    }

    #[test]
    fn the_path_is_one_of_its_own() {
        let server = ServerConfig::default();
        let check = |path: &str| {
            let config = ConsoleConfig { enabled: true, path: path.into(), ..Default::default() };
            config.check(&server, &AuthConfig::default())
        };

        for path in ["/console", "/a/b-c_d", "/mcps"] {
            assert!(check(path).is_ok(), "{path}");
        }
        for path in
            ["", "/", "console", "/console/", "/a//b", "/{x}", "/mcp", "/mcp/x", "/resources"]
        {
            let refused = check(path).unwrap_err().to_string();
            assert!(refused.starts_with("console.path: "), "{path} {refused}");
        }
    }
}
