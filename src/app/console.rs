//! Opens the console of `[console]`.

use std::{sync::Arc, time::Duration};

use larder_login::AccessClient;
use larder_server::http::{Console, OidcLogin, SessionOptions};
use larder_store::vault::Slots;

use super::{base::Base, place::Places};
use crate::config::ConfigError;

/// The console, if it is served, with its sessions beside the resources.
pub(super) fn open(base: &Base, places: &Places) -> Result<Option<Arc<Console>>, ConfigError> {
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
    let oidc = oidc(base, &slots)?;

    let clock = base.clock();
    let console = Console::new(path, public_origin, is_tls, sessions, slots, clock, base.random());
    Ok(Some(Arc::new(console.with_oidc(oidc))))
}

/// The login of `[console.oidc]`.
fn oidc(base: &Base, slots: &Arc<dyn Slots>) -> Result<Option<OidcLogin>, ConfigError> {
    let config = &base.config;
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
