//! `[auth.login]`: the identity provider at which users log in.

use std::{collections::BTreeMap, path::PathBuf};

use larder_login::{
    Allow, Policy, ProviderKind, ProviderOptions, ProviderOptionsError, Rule, check_app_scheme,
};
use larder_oauth::{Scopes, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, secret::client_secret};

/// `[auth.login]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginConfig {
    /// Kind of provider: `"oidc"` (any OpenID provider), `"google"`, `"entra"` or `"github"`.
    pub provider: LoginProvider,
    /// The issuer, exactly as in its metadata; required for `"oidc"`. For `"github"` the URL of a
    /// GitHub Enterprise Server.
    pub issuer: Option<String>,
    /// Client ID of Larder at the provider.
    pub client_id: String,
    /// File with the client secret. Set either this or `client_secret_env`.
    pub client_secret_file: Option<PathBuf>,
    /// Name of the environment variable with the client secret.
    pub client_secret_env: Option<String>,

    /// Scopes that the provider is asked for. When empty those for name, email and groups;
    /// offline_access is added where the provider lists it.
    pub scopes: Vec<String>,
    /// Directory (tenant) ID of Entra, to which users must belong.
    pub tenant: Option<String>,
    /// Domain of the organization at Google, to which users must belong.
    pub hosted_domain: Option<String>,
    /// URL of the API of a GitHub Enterprise Server, or of another Microsoft Graph.
    pub api_url: Option<String>,
    /// Claim with the user's groups, of `"oidc"` and `"entra"`. `"groups"` when not set.
    pub groups_claim: Option<String>,

    /// Users who may log in. Any entry of any list lets a user in; without any nobody may.
    pub allow: LoginAllowConfig,
    /// Scopes of this server, and whom they are granted: `"*"` (everybody who may log in),
    /// `"group:NAME"`, `"email:ADDRESS"` or `"domain:NAME"`.
    pub grants: BTreeMap<String, Vec<String>>,

    /// Schemes of the redirect URIs of further apps, without a query. Allowed without it are https,
    /// http to loopback, schemes that begin with a domain (com.example.app), and the callbacks of
    /// known apps.
    pub redirect_schemes: Vec<String>,
    /// Accept client ID metadata documents at private addresses and on this machine. For
    /// development only.
    pub allow_private_documents: bool,

    /// Seconds that a login lasts without being used.
    pub refresh_ttl: u64,
    /// Seconds after which a user logs in again whose provider gives no refresh token: Larder
    /// cannot ask it whether the account still exists.
    pub reauthenticate: u64,
    /// Clients that may register from one address within a minute.
    pub registrations_per_minute: u32,
    /// Logins and requests for tokens from one address within a minute. Behind a proxy all clients
    /// have its address, unless `server.trusted_proxies` names it.
    pub requests_per_minute: u32,
}

/// `[auth.login.allow]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginAllowConfig {
    /// Domains of verified email addresses.
    pub domains: Vec<String>,
    /// Groups, as the provider names them; at GitHub `"organization/team"`.
    pub groups: Vec<String>,
    /// Verified email addresses.
    pub emails: Vec<String>,
}

/// The kind of identity provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoginProvider {
    /// Any OpenID provider.
    #[default]
    Oidc,
    /// Google accounts and Google Workspace.
    Google,
    /// Microsoft Entra ID.
    Entra,
    /// GitHub.com, or GitHub Enterprise Server.
    GitHub,
}

impl Default for LoginConfig {
    fn default() -> Self {
        Self {
            provider: LoginProvider::default(),
            issuer: None,
            client_id: String::new(),
            client_secret_file: None,
            client_secret_env: None,
            scopes: Vec::new(),
            tenant: None,
            hosted_domain: None,
            api_url: None,
            groups_claim: None,
            allow: LoginAllowConfig::default(),
            grants: BTreeMap::new(),
            redirect_schemes: Vec::new(),
            allow_private_documents: false,
            refresh_ttl: 30 * 24 * 3600,
            reauthenticate: 24 * 3600,
            registrations_per_minute: 60,
            requests_per_minute: 600,
        }
    }
}

impl LoginConfig {
    /// Checks what the types do not guarantee.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let invalid = |setting: &str, problem: &str| {
            Err(ConfigError::new(&format!("auth.login.{setting}"), problem))
        };

        Scopes::required(self.grants.keys())
            .map_err(|error| ConfigError::new("auth.login.grants", error))?;

        if self.refresh_ttl < 600 || self.refresh_ttl > 365 * 24 * 3600 {
            return invalid("refresh_ttl", "it must be from 600 seconds to a year");
        }
        if self.reauthenticate < 600 || self.reauthenticate > 365 * 24 * 3600 {
            return invalid("reauthenticate", "it must be from 600 seconds to a year");
        }
        if self.registrations_per_minute == 0 || self.requests_per_minute == 0 {
            return invalid("requests_per_minute", "each limit must be at least 1");
        }
        if self.client_secret_file.is_some() == self.client_secret_env.is_some() {
            return invalid("client_secret_file", "set either this or client_secret_env");
        }

        {
            for scheme in &self.redirect_schemes {
                check_app_scheme(scheme).or_else(|problem| {
                    invalid("redirect_schemes", &format!("{scheme:?}: {problem}"))
                })?;
            }
            self.policy()?;
            self.options(Secret::new(String::new())).check()?;
        }

        Ok(())
    }

    fn secret(&self) -> Result<Secret, ConfigError> {
        client_secret(
            "auth.login",
            self.client_secret_file.as_deref(),
            self.client_secret_env.as_deref(),
        )
    }

    /// The provider, with its secret.
    ///
    /// # Errors
    /// The secret cannot be read.
    pub fn provider(&self) -> Result<ProviderOptions, ConfigError> {
        Ok(self.options(self.secret()?))
    }

    fn options(&self, client_secret: Secret) -> ProviderOptions {
        ProviderOptions {
            kind: match self.provider {
                LoginProvider::Oidc => ProviderKind::Oidc,
                LoginProvider::Google => ProviderKind::Google,
                LoginProvider::Entra => ProviderKind::Entra,
                LoginProvider::GitHub => ProviderKind::GitHub,
            },
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret,
            scopes: self.scopes.clone(),
            tenant: self.tenant.clone(),
            hosted_domain: self.hosted_domain.clone(),
            api_url: self.api_url.clone(),
            groups_claim: self.groups_claim.clone(),
        }
    }

    /// The provider, as people know it.
    pub(crate) fn provider_name(&self) -> String {
        match self.provider {
            LoginProvider::Google => "Google".to_owned(),
            LoginProvider::Entra => "Microsoft".to_owned(),
            LoginProvider::Oidc | LoginProvider::GitHub => {
                let authority = self.issuer.as_deref().and_then(|url| {
                    let (_, rest) = url.split_once("://")?;
                    rest.split('/').next()
                });
                authority.unwrap_or("GitHub").to_owned()
            }
        }
    }

    /// The rules of who may log in, and of what each person may do.
    ///
    /// # Errors
    /// A rule of `grants` is not one.
    pub fn policy(&self) -> Result<Policy, ConfigError> {
        let LoginAllowConfig { domains, groups, emails } = self.allow.clone();

        let grants = self.grants.iter().map(|(scope, rules)| {
            let rules = rules.iter().map(|rule| {
                let setting = format!("auth.login.grants.{scope:?}");
                rule.parse::<Rule>().map_err(|problem| ConfigError::new(&setting, problem))
            });
            Ok((scope.clone(), rules.collect::<Result<_, ConfigError>>()?))
        });
        let grants = grants.collect::<Result<_, ConfigError>>()?;

        let policy = Policy { allow: Allow { domains, groups, emails }, grants };
        policy.allow.check().map_err(|(setting, problem)| {
            ConfigError::new(&format!("auth.login.allow.{setting}"), problem)
        })?;

        Ok(policy)
    }
}

impl From<ProviderOptionsError> for ConfigError {
    fn from(error: ProviderOptionsError) -> Self {
        Self::new(&format!("auth.login.{}", error.setting), error.problem)
    }
}
