//! Builds what decides access: authentication and scopes.

use std::sync::Arc;

#[cfg(feature = "cli")]
use super::{HttpSetup, state_key::StateKey};
use larder_oauth::OwnTokens;
use larder_oauth::{AuthOptionsError, Authenticator};
use larder_runtime::clock::Clock;
#[cfg(feature = "cli")]
use larder_runtime::random::Random;
use larder_server::registry::{OutputRules, Registry};

use crate::config::{Config, ConfigError};

/// Authentication and scopes.
pub(crate) struct AccessSetup {
    pub(super) registry: Registry,
    pub(super) authenticator: Arc<Authenticator>,
}

impl AccessSetup {
    /// Needs only the configuration, so that it can be checked without starting a server.
    pub(crate) fn new(
        mut registry: Registry,
        config: &Config,
        own: Option<Arc<dyn OwnTokens>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let auth = &config.auth;
        let options = auth.options(config.public_url()?.as_ref())?;
        let authenticator = Authenticator::with_own_tokens(options, own, clock)?;

        registry.set_scope_rules(auth.access()?).map_err(|unknown| {
            let names = unknown.join(", ");
            ConfigError::new("auth.scopes", format!("this server has nothing called {names}"))
        })?;

        registry.set_output_rules(checked_output(&registry, config)?);
        Ok(Self { registry, authenticator: Arc::new(authenticator) })
    }

    /// Checks the settings of HTTP, and the files of `server.tls` and of
    /// `server.state_key_file`.
    ///
    /// # Errors
    /// Names the invalid setting.
    #[cfg(feature = "cli")]
    pub(crate) fn check_http(&self, config: &Config) -> Result<(), ConfigError> {
        StateKey::of_process(config, &Random::system())?;
        HttpSetup::new(config, &self.authenticator).map(drop)
    }
}

/// The rules for the size of results, checked against the tools of this server.
pub(super) fn checked_output(
    registry: &Registry,
    config: &Config,
) -> Result<OutputRules, ConfigError> {
    let rules = config.tools.output();
    registry.check_output_rules(&rules).map_err(|unknown| {
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
