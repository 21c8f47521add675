//! The identity providers: OpenID Connect, with presets for Google and Entra, and GitHub.

mod access;
mod claims;
mod discovery;
mod entra;
mod github;
mod google;
mod http;
mod oidc;
mod token_client;

use std::sync::Arc;

use larder_oauth::{Fetcher, Secret, install_crypto, safe_url};
use larder_runtime::clock::Clock;

pub use self::access::{AccessClient, AccessClientOptions};
use self::{github::GitHub, http::Http, oidc::Oidc, token_client::TokenClient};
use super::IdentityProvider;

/// The section of the configuration that has the provider.
const SECTION: &str = "auth.login";

/// An identity provider, as the configuration describes it.
#[derive(Debug, Clone)]
pub struct ProviderOptions {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// The issuer, exactly as in its metadata; for GitHub its URL. Presets know theirs.
    pub issuer: Option<String>,
    /// The client ID of Larder at the provider.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
    /// The scopes that the provider is asked for; those of the preset, if empty.
    pub scopes: Vec<String>,

    /// Entra: the ID of the tenant, to which users must belong.
    pub tenant: Option<String>,
    /// Google: the domain of the organization, to which users must belong.
    pub hosted_domain: Option<String>,
    /// The URL of the provider's API: GitHub's, or Microsoft Graph.
    pub api_url: Option<String>,
    /// The claim with the groups.
    pub groups_claim: Option<String>,
}

/// The kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Any OpenID provider.
    Oidc,
    /// GitHub.com, or GitHub Enterprise.
    GitHub,
    /// Google accounts and Google Workspace.
    Google,
    /// Microsoft Entra ID.
    Entra,
}

/// An invalid setting of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct ProviderOptionsError {
    /// The name of the setting within `auth.login`.
    pub setting: &'static str,
    /// The problem, in words for an operator.
    pub problem: String,
}

impl ProviderOptions {
    /// The provider. Sends no request.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn open(
        self,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn IdentityProvider>, ProviderOptionsError> {
        self.check()?;
        install_crypto();

        let fetcher = Fetcher::new().map_err(|error| {
            invalid("provider", format!("the HTTP client cannot be created: {error}"))
        })?;
        let http = Http::new(fetcher);

        Ok(match self.kind {
            ProviderKind::GitHub => Arc::new(GitHub::new(self, http)),
            _ => Arc::new(Oidc::new(self, http, clock)),
        })
    }

    /// Checks what the types do not guarantee.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn check(&self) -> Result<(), ProviderOptionsError> {
        use ProviderKind::{Entra, GitHub, Google, Oidc};

        if self.client_id.trim().is_empty() {
            return Err(invalid("client_id", "it is missing"));
        }

        let unfit = [
            ("tenant", self.tenant.is_some(), self.kind == Entra),
            ("hosted_domain", self.hosted_domain.is_some(), self.kind == Google),
            ("api_url", self.api_url.is_some(), matches!(self.kind, GitHub | Entra)),
            ("groups_claim", self.groups_claim.is_some(), matches!(self.kind, Oidc | Entra)),
        ];
        for (setting, is_set, fits) in unfit {
            if is_set && !fits {
                return Err(invalid(setting, "this provider has no such setting"));
            }
        }

        match (&self.issuer, self.kind) {
            (Some(issuer), _) => {
                safe_url(issuer).map_err(|problem| invalid("issuer", problem))?;
            }
            (None, Oidc) => return Err(invalid("issuer", "provider \"oidc\" needs it")),
            (None, Entra) if self.tenant.is_none() => {
                return Err(invalid("tenant", "provider \"entra\" needs it, or issuer"));
            }
            (None, _) => {}
        }

        if let Some(url) = &self.api_url {
            safe_url(url).map_err(|problem| invalid("api_url", problem))?;
        }

        if let Some(tenant) = &self.tenant {
            let is_id = tenant.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            let is_shared = ["common", "organizations", "consumers"].contains(&tenant.as_str());
            if !is_id || is_shared || tenant.is_empty() {
                let problem = "it must be the directory (tenant) ID of one organization";
                return Err(invalid("tenant", problem));
            }
        }

        if self.hosted_domain.as_ref().is_some_and(|domain| !domain.contains('.')) {
            return Err(invalid("hosted_domain", "it must be a domain such as example.com"));
        }

        let is_openid = self.scopes.is_empty() || self.scopes.iter().any(|s| s == "openid");
        if self.kind != GitHub && !is_openid {
            return Err(invalid("scopes", "\"openid\" must be among them"));
        }

        Ok(())
    }

    /// The issuer, which is part of each principal.
    fn issuer(&self) -> String {
        let tenant = self.tenant.as_deref().unwrap_or_default();
        self.issuer.clone().unwrap_or_else(|| match self.kind {
            ProviderKind::Google => google::ISSUER.to_owned(),
            ProviderKind::GitHub => github::URL.to_owned(),
            ProviderKind::Entra | ProviderKind::Oidc => entra::issuer(tenant),
        })
    }

    fn token_client(&self) -> TokenClient {
        TokenClient {
            id: self.client_id.clone(),
            secret: self.client_secret.clone(),
            resource: None,
            section: SECTION,
        }
    }
}

fn invalid(setting: &'static str, problem: impl Into<String>) -> ProviderOptionsError {
    ProviderOptionsError { setting, problem: problem.into() }
}
