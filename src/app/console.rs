//! Opens the console of `[console]`.

use std::{sync::Arc, time::Duration};

use larder_login::AccessClient;
use larder_runtime::{clock::Clock, random::Random};
use larder_server::http::{Console, OidcLogin, SessionOptions};
use larder_store::vault::Slots;

use super::place::Places;
use crate::config::{Config, ConfigError};

/// The console, if it is served, with its sessions beside the resources.
pub(super) fn open(
    config: &Config,
    places: &Places,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Option<Arc<Console>>, ConfigError> {
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

    let slots = places.slots(clock);
    let oidc = oidc(config, &slots, clock, random)?;

    let clock = Arc::clone(clock);
    let console = Console::new(path, public_origin, is_tls, sessions, slots, clock, random.clone());
    Ok(Some(Arc::new(console.with_oidc(oidc))))
}

/// The login of `[console.oidc]`.
fn oidc(
    config: &Config,
    slots: &Arc<dyn Slots>,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Option<OidcLogin>, ConfigError> {
    let (Some(oidc), Some(url)) = (&config.console.oidc, config.public_url()?) else {
        return Ok(None);
    };

    let client = AccessClient::new(oidc.client(&config.auth, &url)?, Arc::clone(clock));
    let client = client.map_err(|error| {
        ConfigError::new(&format!("console.oidc.{}", error.setting), error.problem)
    })?;

    let (slots, clock) = (Arc::clone(slots), Arc::clone(clock));
    Ok(Some(OidcLogin::new(client, url.origin(), slots, clock, random.clone())))
}
