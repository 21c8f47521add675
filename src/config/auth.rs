//! `[auth]`: who may call, and with which scopes what.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, PublicUrl};
use crate::{
    auth::{
        AuthOptions, Hierarchy, IntrospectionOptions, IssuerOptions, Scopes, Secret, StaticToken,
    },
    registry::Access,
};

/// `[auth]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// How callers show who they are.
    pub mode: AuthMode,
    /// The scopes that every request needs.
    pub required_scopes: Vec<String>,
    /// More scopes by what is asked for: names of tools and prompts, URIs of
    /// resources, templates; a `*` at the end stands for any ending.
    pub scopes: BTreeMap<String, Vec<String>>,
    /// Which scopes imply which others.
    pub hierarchy: BTreeMap<String, Vec<String>>,
    /// The server's name for people, in its metadata.
    pub resource_name: Option<String>,
    /// Whose tokens are accepted, with the mode `oauth`.
    pub issuers: Vec<IssuerConfig>,
    /// The tokens that are accepted, with the mode `static`.
    pub tokens: Vec<TokenConfig>,
}

/// How callers show who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all.
    #[default]
    None,
    /// By access tokens of authorization servers.
    OAuth,
    /// By tokens whose hashes stand in the configuration.
    Static,
}

/// `[[auth.issuers]]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IssuerConfig {
    /// Its name, exactly as in its tokens.
    pub issuer: String,
    /// Where its keys are; discovered by default.
    pub jwks_url: Option<String>,
    /// More audiences that its tokens may be for than `server.public_url`.
    pub audiences: Vec<String>,
    /// Accept tokens of the type `JWT`, or none, beside `at+jwt`.
    pub any_typ: bool,
    /// The claim that the scopes stand in; `scope` by default.
    pub scope_claim: Option<String>,
    /// The claim that the groups stand in, which resources can be shared with;
    /// `groups` by default.
    pub groups_claim: Option<String>,
    /// How to ask it about opaque tokens; refused by default.
    pub introspection: Option<IntrospectionConfig>,
}

/// `[auth.issuers.introspection]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IntrospectionConfig {
    /// Where to ask; discovered by default.
    pub url: Option<String>,
    /// As whom.
    pub client_id: String,
    /// The file with the secret for that.
    pub client_secret_file: Option<PathBuf>,
    /// Or the environment variable with it.
    pub client_secret_env: Option<String>,
}

/// `[[auth.tokens]]`
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenConfig {
    /// Whose it is.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// The groups that it is in, which resources can be shared with.
    pub groups: Vec<String>,
}

/// Without the hash.
impl std::fmt::Debug for TokenConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, scopes, groups, .. } = self;
        f.debug_struct("TokenConfig")
            .field("name", name)
            .field("scopes", scopes)
            .field("groups", groups)
            .finish_non_exhaustive()
    }
}

impl AuthConfig {
    /// Checks what types alone do not say.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self, public_url: Option<&PublicUrl>) -> Result<(), ConfigError> {
        let needs = |setting, problem: &str| Err(ConfigError::new(setting, problem));
        match self.mode {
            AuthMode::OAuth if self.issuers.is_empty() => {
                return needs("auth.issuers", "the mode oauth needs at least one");
            }
            AuthMode::OAuth => match public_url {
                None => {
                    return needs(
                        "server.public_url",
                        "the mode oauth needs it: it is the audience that tokens must be for",
                    );
                }
                Some(url) if !url.is_safe() => {
                    return needs(
                        "server.public_url",
                        "plain http is accepted for loopback only; use https",
                    );
                }
                Some(_) => {}
            },
            AuthMode::Static if self.tokens.is_empty() => {
                return needs("auth.tokens", "the mode static needs at least one");
            }
            AuthMode::Static | AuthMode::None => {}
        }
        if self.mode != AuthMode::OAuth && !self.issuers.is_empty() {
            return needs("auth.mode", "there are issuers, so it must be \"oauth\"");
        }
        if self.mode != AuthMode::Static && !self.tokens.is_empty() {
            return needs("auth.mode", "there are tokens, so it must be \"static\"");
        }
        if self.mode == AuthMode::None
            && !(self.scopes.is_empty() && self.required_scopes.is_empty())
        {
            return needs("auth.mode", "scopes are asked for, so it must not be \"none\"");
        }
        self.access()?;
        self.check_hierarchy()?;
        for (at, issuer) in self.issuers.iter().enumerate() {
            issuer.check(&format!("auth.issuers[{at}]"))?;
            if self.issuers[..at].iter().any(|other| other.issuer == issuer.issuer) {
                return needs("auth.issuers", "one of them is there twice");
            }
        }
        if self.issuers.iter().filter(|issuer| issuer.introspection.is_some()).count() > 1 {
            return needs(
                "auth.issuers",
                "only one may have introspection: an opaque token does not say whose it is, and is not shown to others",
            );
        }
        for (at, token) in self.tokens.iter().enumerate() {
            let read = token.read(at)?;
            let others = &self.tokens[..at];
            if others.iter().any(|other| other.name == token.name) {
                return needs("auth.tokens", "a name is there twice");
            }
            if others.iter().filter_map(|t| t.read(at).ok()).any(|t| t.sha256 == read.sha256) {
                return needs("auth.tokens", "a token is there twice");
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
    /// Names the one that is none.
    pub fn required_scopes(&self) -> Result<Scopes, ConfigError> {
        Scopes::required(&self.required_scopes)
            .map_err(|error| ConfigError::new("auth.required_scopes", error))
    }

    /// Which scopes are needed for what.
    ///
    /// # Errors
    /// Names the setting.
    pub fn access(&self) -> Result<Access, ConfigError> {
        let everything = Access::new(self.required_scopes()?);
        self.scopes.iter().try_fold(everything, |access, (name, scopes)| {
            let setting = format!("auth.scopes.{name:?}");
            let scopes = Scopes::required(scopes).map_err(|e| ConfigError::new(&setting, e))?;
            if scopes.is_empty() || name.trim_matches('*').is_empty() {
                return Err(ConfigError::new(&setting, "name something, and at least one scope"));
            }
            Ok(access.rule(name, scopes))
        })
    }

    /// What the authenticator needs, secrets included.
    ///
    /// # Errors
    /// Names the setting.
    pub fn options(&self, public_url: Option<&PublicUrl>) -> Result<AuthOptions, ConfigError> {
        let hierarchy = Hierarchy::new(&self.hierarchy);
        match self.mode {
            AuthMode::None => Ok(AuthOptions::None),
            AuthMode::Static => {
                let tokens = self.tokens.iter().enumerate().map(|(at, token)| token.read(at));
                Ok(AuthOptions::Static { tokens: tokens.collect::<Result<_, _>>()?, hierarchy })
            }
            AuthMode::OAuth => {
                let issuers = self.issuers.iter().enumerate();
                let issuers = issuers.map(|(at, i)| i.options(&format!("auth.issuers[{at}]")));
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
    fn check(&self, at: &str) -> Result<(), ConfigError> {
        crate::auth::check_url(&self.issuer)
            .map_err(|problem| ConfigError::new(&format!("{at}.issuer"), problem))?;
        let Some(introspection) = &self.introspection else { return Ok(()) };
        let problem = |setting: &str, problem: &str| {
            Err(ConfigError::new(&format!("{at}.introspection.{setting}"), problem))
        };
        if introspection.client_id.is_empty() {
            return problem("client_id", "it is missing");
        }
        match (&introspection.client_secret_file, &introspection.client_secret_env) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => problem("client_secret_file", "give either this or client_secret_env"),
        }
    }

    fn options(&self, at: &str) -> Result<IssuerOptions, ConfigError> {
        let introspection = self.introspection.as_ref().map(|introspection| {
            let client_secret = introspection.secret(&format!("{at}.introspection"))?;
            let IntrospectionConfig { url, client_id, .. } = introspection.clone();
            Ok::<_, ConfigError>(IntrospectionOptions { url, client_id, client_secret })
        });
        Ok(IssuerOptions {
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

impl IntrospectionConfig {
    fn secret(&self, at: &str) -> Result<Secret, ConfigError> {
        let (setting, read) = match (&self.client_secret_file, &self.client_secret_env) {
            (Some(file), _) => (
                "client_secret_file",
                std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display())),
            ),
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let read = std::env::var(name).map_err(|_| format!("{name} is not set"));
                ("client_secret_env", read)
            }
        };
        let problem = |problem| ConfigError::new(&format!("{at}.{setting}"), problem);
        let secret = read.map_err(problem)?;
        match secret.trim() {
            "" => Err(problem("it is empty".into())),
            secret => Ok(Secret::new(secret)),
        }
    }
}

impl TokenConfig {
    fn read(&self, at: usize) -> Result<StaticToken, ConfigError> {
        let problem = |setting: &str, problem: &dyn std::fmt::Display| {
            ConfigError::new(&format!("auth.tokens[{at}].{setting}"), problem)
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
            // Not shown: somebody may have put the token itself there.
            problem("sha256", &"it must be the SHA-256 of the token, in 64 hexadecimal digits")
        })?;
        for (byte, pair) in sha256.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        let scopes = Scopes::required(&self.scopes).map_err(|error| problem("scopes", &error))?;
        Ok(StaticToken { name: self.name.clone(), sha256, scopes, groups: self.groups.clone() })
    }
}
