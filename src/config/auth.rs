//! `[auth]`: authentication and scopes.

use std::{collections::BTreeMap, path::PathBuf};

use chrono::DateTime;
use larder_oauth::{
    AuthOptions, Hierarchy, IntrospectionLimits, IntrospectionOptions, IssuerOptions, Scopes,
    StaticToken,
};
use larder_runtime::clock::Timestamp;
use larder_server::registry::ScopeRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, LoginConfig, PublicUrl, secret::client_secret};

/// `[auth]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Authentication mode: `"none"`, `"oauth"` (access tokens of the issuers below), `"login"`
    /// (users log in at the identity provider below, and Larder issues the tokens) or `"static"`
    /// (the tokens below). See docs/auth.md and docs/login.md.
    pub mode: AuthMode,

    /// Scopes that every request needs.
    pub required_scopes: Vec<String>,
    /// Additional scopes by tool name, prompt name, resource URI or template. A trailing * matches
    /// any ending.
    pub scopes: BTreeMap<String, Vec<String>>,
    /// Scopes that imply other scopes.
    pub hierarchy: BTreeMap<String, Vec<String>>,
    /// Display name of the server in the protected resource metadata.
    pub resource_name: Option<String>,

    /// An authorization server whose access tokens are accepted (mode = `"oauth"`).
    pub issuers: Vec<IssuerConfig>,
    /// The identity provider at which users log in (mode = `"login"`). Larder is its only client
    /// there, with `server.public_url` and /login/callback as redirect URI.
    pub login: Option<LoginConfig>,
    /// An accepted token (mode = `"static"`).
    pub tokens: Vec<TokenConfig>,
}

/// The authentication mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// No authentication.
    #[default]
    None,
    /// ScopeRules tokens of the configured authorization servers.
    OAuth,
    /// Tokens that this server issues to users who log in at an identity provider.
    Login,
    /// Tokens whose SHA-256 is in the configuration.
    Static,
}

/// `[[auth.issuers]]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IssuerConfig {
    /// The issuer identifier, exactly as in its tokens.
    pub issuer: String,
    /// URL of the key set (JWKS). Discovered when not set.
    pub jwks_url: Option<String>,
    /// Accepted audiences in addition to `server.public_url`.
    pub audiences: Vec<String>,
    /// Also accept tokens whose type (typ) is JWT or missing. By default the type must be at+jwt.
    pub any_typ: bool,

    /// Claim that holds the scopes. `"scope"` when not set.
    pub scope_claim: Option<String>,
    /// Claim that holds the groups that resources can be shared with. `"groups"` when not set.
    pub groups_claim: Option<String>,

    /// Token introspection for opaque tokens, which are refused without it. Only one issuer may
    /// have it.
    pub introspection: Option<IntrospectionConfig>,
}

/// `[auth.issuers.introspection]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IntrospectionConfig {
    /// URL of the introspection endpoint. Discovered when not set.
    pub url: Option<String>,
    /// Client ID of Larder at the authorization server.
    pub client_id: String,
    /// File with the client secret. Set either this or `client_secret_env`.
    pub client_secret_file: Option<PathBuf>,
    /// Name of the environment variable with the client secret.
    pub client_secret_env: Option<String>,
    /// Beginning of every opaque token of the issuer. Others are refused without a request to
    /// the issuer.
    pub token_prefix: Option<String>,

    /// Concurrent introspection requests.
    pub concurrent: usize,
    /// Tokens that wait for one of these requests to end. More get a 503.
    pub waiting: usize,
    /// Tokens that are not active, from one address within a minute. After that its tokens do not
    /// wait, and share an eighth of the concurrent requests.
    pub failures_per_minute: u32,
}

impl Default for IntrospectionConfig {
    fn default() -> Self {
        let IntrospectionLimits { concurrent, waiting, failures_per_minute } =
            IntrospectionLimits::default();

        Self {
            url: None,
            client_id: String::new(),
            client_secret_file: None,
            client_secret_env: None,
            token_prefix: None,
            concurrent,
            waiting,
            failures_per_minute,
        }
    }
}

/// `[[auth.tokens]]`
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenConfig {
    /// Name of the token's holder, who owns the resources and sessions made with it. Several tokens
    /// may have one name, so that one can replace another.
    pub name: String,
    /// SHA-256 of the token in hexadecimal: printf %s `"$TOKEN"` | sha256sum
    pub sha256: String,
    /// Scopes of the token.
    pub scopes: Vec<String>,
    /// Groups of the token's holder, which resources can be shared with.
    pub groups: Vec<String>,
    /// When the token is no longer accepted (RFC 3339). Never when not set.
    pub expires: Option<String>,
}

/// Omits the hash.
impl std::fmt::Debug for TokenConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, scopes, groups, expires, .. } = self;
        f.debug_struct("TokenConfig")
            .field("name", name)
            .field("scopes", scopes)
            .field("groups", groups)
            .field("expires", expires)
            .finish_non_exhaustive()
    }
}

impl AuthConfig {
    /// Checks what the types do not guarantee.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self, public_url: Option<&PublicUrl>) -> Result<(), ConfigError> {
        self.check_mode(public_url)?;

        if let Some(login) = &self.login {
            login.check()?;
        }
        self.access()?;
        self.check_hierarchy()?;
        self.check_issuers()?;
        self.check_tokens()
    }

    /// The mode has what it needs, and no other mode's settings are there.
    fn check_mode(&self, public_url: Option<&PublicUrl>) -> Result<(), ConfigError> {
        match self.mode {
            AuthMode::OAuth if self.issuers.is_empty() => {
                return invalid("auth.issuers", "mode \"oauth\" needs at least one issuer");
            }
            AuthMode::Login if self.login.is_none() => {
                return invalid("auth.login", "mode \"login\" needs an identity provider");
            }
            AuthMode::Static if self.tokens.is_empty() => {
                return invalid("auth.tokens", "mode \"static\" needs at least one token");
            }
            AuthMode::OAuth | AuthMode::Login => check_audience(public_url)?,
            AuthMode::Static | AuthMode::None => {}
        }

        if self.mode != AuthMode::OAuth && !self.issuers.is_empty() {
            return invalid("auth.mode", "auth.issuers is set, so it must be \"oauth\"");
        }
        if self.mode != AuthMode::Login && self.login.is_some() {
            return invalid("auth.mode", "auth.login is set, so it must be \"login\"");
        }
        if self.mode != AuthMode::Static && !self.tokens.is_empty() {
            return invalid("auth.mode", "auth.tokens is set, so it must be \"static\"");
        }

        let needs_scopes = !(self.scopes.is_empty() && self.required_scopes.is_empty());
        if self.mode == AuthMode::None && needs_scopes {
            return invalid("auth.mode", "scopes are required, so it must not be \"none\"");
        }

        Ok(())
    }

    fn check_issuers(&self) -> Result<(), ConfigError> {
        for (index, issuer) in self.issuers.iter().enumerate() {
            issuer.check(&format!("auth.issuers[{index}]"))?;
            if self.issuers[..index].iter().any(|other| other.issuer == issuer.issuer) {
                return invalid("auth.issuers", "an issuer is listed twice");
            }
        }

        if self.issuers.iter().filter(|issuer| issuer.introspection.is_some()).count() > 1 {
            return invalid(
                "auth.issuers",
                "only one issuer may have introspection: an opaque token does not name its issuer and must not be sent to others",
            );
        }

        Ok(())
    }

    fn check_tokens(&self) -> Result<(), ConfigError> {
        for (index, token) in self.tokens.iter().enumerate() {
            let read = token.read(index)?;
            let others = &self.tokens[..index];
            if others.iter().filter_map(|t| t.read(index).ok()).any(|t| t.sha256 == read.sha256) {
                return invalid("auth.tokens", "a token is listed twice");
            }
        }

        Ok(())
    }

    fn check_hierarchy(&self) -> Result<(), ConfigError> {
        for (broad, narrow) in &self.hierarchy {
            let all = narrow.iter().chain([broad]);
            Scopes::required(all)
                .map_err(|e| ConfigError::new(&format!("auth.hierarchy.{broad:?}"), e))?;
        }
        Ok(())
    }

    /// The scopes that every request needs.
    ///
    /// # Errors
    /// Names the invalid scope.
    pub fn required_scopes(&self) -> Result<Scopes, ConfigError> {
        Scopes::required(&self.required_scopes)
            .map_err(|error| ConfigError::new("auth.required_scopes", error))
    }

    /// The required scopes of tools, prompts and resources.
    ///
    /// # Errors
    /// Names the setting.
    pub fn access(&self) -> Result<ScopeRules, ConfigError> {
        let everything = ScopeRules::new(self.required_scopes()?);

        self.scopes.iter().try_fold(everything, |access, (name, scopes)| {
            let setting = format!("auth.scopes.{name:?}");
            let scopes = Scopes::required(scopes).map_err(|e| ConfigError::new(&setting, e))?;
            if scopes.is_empty() || name.trim_matches('*').is_empty() {
                return Err(ConfigError::new(&setting, "give a name and at least one scope"));
            }
            Ok(access.rule(name, scopes))
        })
    }

    /// The options of the authenticator, secrets included.
    ///
    /// # Errors
    /// Names the setting.
    pub fn options(&self, public_url: Option<&PublicUrl>) -> Result<AuthOptions, ConfigError> {
        let hierarchy = Hierarchy::new(&self.hierarchy);

        match self.mode {
            AuthMode::None => Ok(AuthOptions::None),
            AuthMode::Static => {
                let tokens = self.tokens.iter().enumerate().map(|(index, token)| token.read(index));
                Ok(AuthOptions::Static { tokens: tokens.collect::<Result<_, _>>()?, hierarchy })
            }
            AuthMode::Login => {
                let issuer = public_url.map(|url| url.as_str().to_owned()).unwrap_or_default();
                Ok(AuthOptions::OAuth {
                    audience: issuer.clone(),
                    issuers: vec![IssuerOptions::own(issuer)],
                    hierarchy,
                })
            }
            AuthMode::OAuth => {
                let issuers = self.issuers.iter().enumerate();
                let issuers =
                    issuers.map(|(index, i)| i.options(&format!("auth.issuers[{index}]")));
                Ok(AuthOptions::OAuth {
                    audience: public_url.map(|url| url.as_str().to_owned()).unwrap_or_default(),
                    issuers: issuers.collect::<Result<_, _>>()?,
                    hierarchy,
                })
            }
        }
    }
}

impl IssuerConfig {
    fn check(&self, path: &str) -> Result<(), ConfigError> {
        larder_oauth::check_url(&self.issuer)
            .map_err(|problem| ConfigError::new(&format!("{path}.issuer"), problem))?;

        let Some(introspection) = &self.introspection else { return Ok(()) };
        let problem = |setting: &str, problem: &str| {
            Err(ConfigError::new(&format!("{path}.introspection.{setting}"), problem))
        };
        if introspection.client_id.is_empty() {
            return problem("client_id", "it is missing");
        }

        match (&introspection.client_secret_file, &introspection.client_secret_env) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => problem("client_secret_file", "set either this or client_secret_env"),
        }
    }

    fn options(&self, path: &str) -> Result<IssuerOptions, ConfigError> {
        let introspection = self.introspection.as_ref().map(|introspection| {
            let client_secret = client_secret(
                &format!("{path}.introspection"),
                introspection.client_secret_file.as_deref(),
                introspection.client_secret_env.as_deref(),
            )?;

            let IntrospectionConfig { url, client_id, token_prefix, .. } = introspection.clone();
            let IntrospectionConfig { concurrent, waiting, failures_per_minute, .. } =
                *introspection;
            let limits = IntrospectionLimits { concurrent, waiting, failures_per_minute };

            Ok::<_, ConfigError>(IntrospectionOptions {
                url,
                client_id,
                client_secret,
                token_prefix,
                limits,
            })
        });

        Ok(IssuerOptions {
            is_own: false,
            issuer: self.issuer.clone(),
            jwks_url: self.jwks_url.clone(),
            audiences: self.audiences.clone(),
            any_typ: self.any_typ,
            scope_claim: self.scope_claim.clone().unwrap_or_else(|| "scope".into()),
            groups_claim: self.groups_claim.clone().unwrap_or_else(|| "groups".into()),
            introspection: introspection.transpose()?,
        })
    }
}

impl TokenConfig {
    fn read(&self, index: usize) -> Result<StaticToken, ConfigError> {
        let problem = |setting: &str, problem: &dyn std::fmt::Display| {
            ConfigError::new(&format!("auth.tokens[{index}].{setting}"), problem)
        };

        if self.name.trim().is_empty() {
            return Err(problem("name", &"it is missing"));
        }

        let mut sha256 = [0; 32];
        let digits: Option<Vec<u8>> = self
            .sha256
            .chars()
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(|| {
            // The value is not shown, because it may be the token itself.
            problem("sha256", &"it must be the SHA-256 of the token, in 64 hexadecimal digits")
        })?;

        for (byte, pair) in sha256.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }

        let scopes = Scopes::required(&self.scopes).map_err(|error| problem("scopes", &error))?;
        let expires = self.expires.as_deref().map(DateTime::parse_from_rfc3339).transpose();
        let expires = expires.map_err(|_| {
            problem("expires", &"it is not a time such as \"2027-01-01T00:00:00Z\"")
        })?;
        let expires = expires.map(|time| u64::try_from(time.timestamp_millis()).unwrap_or(0));

        let name = self.name.clone();
        let groups = self.groups.clone();
        let expires = expires.map(Timestamp::from_millis);
        Ok(StaticToken { name, sha256, scopes, groups, expires })
    }
}

fn invalid(setting: &str, problem: &str) -> Result<(), ConfigError> {
    Err(ConfigError::new(setting, problem))
}

/// The public URL is the audience of tokens, so it is needed and must not be forged.
fn check_audience(public_url: Option<&PublicUrl>) -> Result<(), ConfigError> {
    match public_url {
        None => invalid(
            "server.public_url",
            "modes \"oauth\" and \"login\" need it: it is the audience of tokens",
        ),
        Some(url) if !url.is_safe() => {
            invalid("server.public_url", "http is accepted for loopback only; use https")
        }
        Some(_) => Ok(()),
    }
}
