//! Opens the console of `[console]`.

use std::{sync::Arc, time::Duration};

use larder_login::AccessClient;
use larder_runtime::{clock::Clock, random::Random};
use larder_server::http::OidcLogin;
use larder_server::http::{Console, SessionOptions};
use larder_store::redis::Redis;
use larder_store::vault::Slots;

use super::{OpenError, used_links};
use crate::config::{Config, ConfigError};

/// The console, with sessions in the place of `store.url`.
pub(super) async fn open(
    config: &Config,
    redis: Option<&Redis>,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Option<Arc<Console>>, OpenError> {
    if !config.console.enabled {
        return Ok(None);
    }

    let slots = used_links::open(config, redis, Arc::clone(clock), random);
    Ok(Some(console(config, slots.await?, clock, random)?))
}

/// The console, with sessions that end with the process.
pub(super) fn in_memory(
    config: &Config,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Option<Arc<Console>>, ConfigError> {
    if !config.console.enabled {
        return Ok(None);
    }

    let slots = used_links::in_memory(Arc::clone(clock));
    console(config, slots, clock, random).map(Some)
}

fn console(
    config: &Config,
    slots: Arc<dyn Slots>,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Arc<Console>, ConfigError> {
    let sessions = SessionOptions {
        lifetime: Duration::from_secs(config.console.session),
        per_principal: config.console.sessions_per_principal,
    };

    let public_origin = config.public_url()?.map(|url| url.origin());
    let (path, is_tls) = (&config.console.path, config.server.tls.is_some());
    let (clock, random) = (Arc::clone(clock), random.clone());

    let oidc = oidc(config, &slots, &clock, &random)?;
    let console = Console::new(path, public_origin, is_tls, sessions, slots, clock, random);
    let console = console.with_oidc(oidc);
    Ok(Arc::new(console))
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
