//! Builds what decides access: authentication, scopes, allowed hosts and the certificate.

use std::sync::Arc;

use crate::{
    auth::{AuthOptionsError, Authenticator},
    clock::Clock,
    config::{AuthMode, Config, ConfigError, PublicUrl},
    http::{AllowedHosts, Certificate, CertificateError, HttpOptions, ProtectedResource},
    registry::{OutputRules, Registry},
};

/// Authentication, scopes and the certificate.
pub(crate) struct AccessSetup {
    pub(super) registry: Registry,
    pub(super) authenticator: Arc<Authenticator>,
    /// The metadata that tells clients where to get tokens, if there is an authorization
    /// server.
    pub(super) protected: Option<ProtectedResource>,
    pub(super) certificate: Option<Arc<Certificate>>,
}

impl AccessSetup {
    /// Needs only the configuration, so that it can be checked without starting a server.
    pub(crate) fn new(
        mut registry: Registry,
        config: &Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let auth = &config.auth;
        let public_url = config.public_url()?;
        let authenticator = Authenticator::new(auth.options(public_url.as_ref())?, clock)?;
        registry.protect(auth.access()?).map_err(|unknown| {
            let names = unknown.join(", ");
            ConfigError::new("auth.scopes", format!("this server has nothing called {names}"))
        })?;
        registry.bound_output(checked_output(&registry, config)?);
        let protected = match (auth.mode, &public_url) {
            (AuthMode::OAuth, Some(url)) => ProtectedResource::new(
                url.as_str(),
                &config.server.path,
                authenticator.issuers(),
                &auth.required_scopes()?,
                auth.resource_name.as_deref(),
            ),
            _ => None,
        };
        let certificate = config.server.tls.as_ref();
        let certificate = certificate.map(|tls| Certificate::open(&tls.cert, &tls.key));
        let certificate = certificate.transpose()?;
        Ok(Self { registry, authenticator: Arc::new(authenticator), protected, certificate })
    }
}

/// The rules for the size of results, checked against the tools of this server.
pub(super) fn checked_output(
    registry: &Registry,
    config: &Config,
) -> Result<OutputRules, ConfigError> {
    let rules = config.tools.output();
    registry.check_output(&rules).map_err(|unknown| {
        let names = unknown.join(", ");
        ConfigError::new("tools.spill", format!("this server has no tool called {names}"))
    })?;
    Ok(rules)
}

impl From<AuthOptionsError> for ConfigError {
    fn from(error: AuthOptionsError) -> Self {
        Self::new(&error.setting, error.problem)
    }
}

impl From<CertificateError> for ConfigError {
    fn from(error: CertificateError) -> Self {
        let CertificateError { setting, file, problem } = error;
        Self::new(&format!("server.tls.{setting}"), format!("{}: {problem}", file.display()))
    }
}

pub(super) fn allowed_hosts(config: &Config, public_url: Option<&PublicUrl>) -> AllowedHosts {
    let server = &config.server;
    let mut hosts = AllowedHosts::default();
    if !server.listen.ip().is_unspecified() {
        hosts = hosts.host(&server.listen.to_string());
    }
    hosts = public_url.iter().fold(hosts, |hosts, url| hosts.host(url.authority()));
    hosts = server.allowed_hosts.iter().fold(hosts, |hosts, host| hosts.host(host));
    server.allowed_origins.iter().fold(hosts, |hosts, origin| hosts.origin(origin))
}

pub(super) fn http_options(config: &Config, public_url: Option<&PublicUrl>) -> HttpOptions {
    HttpOptions {
        path: config.server.path.clone(),
        body_bytes: config.limits.body_bytes,
        body_values: config.limits.body_values,
        json_response: config.server.json_response,
        hosts: allowed_hosts(config, public_url),
        ..HttpOptions::default()
    }
}
