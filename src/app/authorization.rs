//! Opens the authorization server of `auth.mode = "login"`.

use std::{sync::Arc, time::Duration};

use larder_login::{LoginOptions, LoginServer, OwnConsole};
use larder_oauth::Hierarchy;

use super::{base::Base, place::Places};
use crate::config::{AuthMode, ConfigError};

/// The authorization server, if this server is its own.
pub(super) fn open(base: &Base, places: &Places) -> Result<Option<Arc<LoginServer>>, ConfigError> {
    let config = &base.config;
    let (AuthMode::Login, Some(login), Some(url)) =
        (config.auth.mode, &config.auth.login, config.public_url()?)
    else {
        return Ok(None);
    };

    let options = LoginOptions {
        base_url: url.as_str().to_owned(),
        default_scopes: config.auth.required_scopes()?,
        hierarchy: Hierarchy::new(&config.auth.hierarchy),
        redirect_schemes: login.redirect_schemes.clone(),
        allow_private_documents: login.allow_private_documents,
        refresh_ttl: Duration::from_secs(login.refresh_ttl),
        reauthenticate: Duration::from_secs(login.reauthenticate),
        registrations_per_minute: login.registrations_per_minute,
        requests_per_minute: login.requests_per_minute,
        console: config.console.enabled.then(|| OwnConsole {
            redirect_uri: format!("{}{}/callback", url.origin(), config.console.path),
            session: Duration::from_secs(config.console.session),
            provider: login.provider_name(),
        }),
    };

    let provider = login.provider()?.open(base.clock())?;
    let policy = login.policy()?;
    let vault = places.vault(base);
    let server = LoginServer::new(options, provider, policy, vault, base.clock(), base.random());
    server.map(Some).map_err(|problem| ConfigError::new("auth.login", problem))
}
