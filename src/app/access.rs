//! [`Access`] and rules for the items: authentication, scopes, and how much of a result a caller
//! gets at once.

use std::sync::Arc;

use larder_login::LoginServer;
use larder_oauth::{AuthOptionsError, Authenticator, OwnTokens};
use larder_server::registry::{OutputRules, Registry};

use super::{authorization, base::Base, place::Places};
use crate::config::{Config, ConfigError};

/// How callers are authenticated.
pub(super) struct Access {
    pub(super) authenticator: Arc<Authenticator>,
    /// The authorization server, if this server is its own.
    pub(super) login: Option<Arc<LoginServer>>,
}

impl Access {
    pub(super) fn open(base: &Base, places: &Places) -> Result<Self, ConfigError> {
        let login = authorization::open(base, places)?;
        let own_tokens = login.clone().map(|login| login as Arc<dyn OwnTokens>);

        let options = base.config.auth.options(base.config.public_url()?.as_ref())?;
        let authenticator = Authenticator::with_own_tokens(options, own_tokens, base.clock())?;
        Ok(Self { authenticator: Arc::new(authenticator), login })
    }
}

/// Sets the rules of the configuration for the items of this server.
pub(super) fn set_rules(registry: &mut Registry, config: &Config) -> Result<(), ConfigError> {
    registry.set_scope_rules(config.auth.access()?).map_err(|unknown| {
        let names = unknown.join(", ");
        ConfigError::new("auth.scopes", format!("this server has nothing called {names}"))
    })?;

    registry.set_output_rules(checked_output(registry, config)?);
    Ok(())
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
