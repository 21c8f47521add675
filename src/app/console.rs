//! Opens the console of `[console]`.

use std::{sync::Arc, time::Duration};

use larder_login::{AccessClient, LoginServer};
use larder_server::http::{Console, OidcLogin, SessionOptions};
use larder_store::vault::Slots;

use super::{base::Base, place::Places};
use crate::config::ConfigError;

/// The console, if it is served, with its sessions beside the resources.
/// `login` is the authorization server of this server, if it is its own.
pub(super) fn open(
    base: &Base,
    places: &Places,
    login: Option<&Arc<LoginServer>>,
) -> Result<Option<Arc<Console>>, ConfigError> {
    let config = &base.config;
    if !config.console.enabled {
        return Ok(None);
    }

    let sessions = SessionOptions {
        lifetime: Duration::from_secs(config.console.session),
        per_principal: config.console.sessions_per_principal,
    };

    let public_origin = config.public_url()?.map(|url| url.origin());
    let path = &config.console.path;
    let is_tls = config.server.tls.is_some();

    let slots = places.slots(base);
    let oidc = oidc(base, &slots, login)?;

    let clock = base.clock();
    let console = Console::new(path, public_origin, is_tls, sessions, slots, clock, base.random());
    Ok(Some(Arc::new(console.with_oidc(oidc))))
}

/// The login at this server itself, or that of `[console.oidc]`.
fn oidc(
    base: &Base,
    slots: &Arc<dyn Slots>,
    login: Option<&Arc<LoginServer>>,
) -> Result<Option<OidcLogin>, ConfigError> {
    let config = &base.config;
    if let (Some(login), Some(url)) = (login, config.public_url()?) {
        let slots = Arc::clone(slots);
        let login = Arc::clone(login);
        let random = base.random();
        return Ok(Some(OidcLogin::here(login, url.origin(), slots, base.clock(), random)));
    }
    let (Some(oidc), Some(url)) = (&config.console.oidc, config.public_url()?) else {
        return Ok(None);
    };

    let client = AccessClient::new(oidc.client(&config.auth, &url)?, base.clock());
    let client = client.map_err(|error| {
        ConfigError::new(&format!("console.oidc.{}", error.setting), error.problem)
    })?;

    let slots = Arc::clone(slots);
    Ok(Some(OidcLogin::new(client, url.origin(), slots, base.clock(), base.random())))
}
