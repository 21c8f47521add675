//! Opens the logins of upstreams: with a vault for the tokens, and this server's URL.

use std::sync::Arc;

use larder_runtime::{clock::Clock, random::Random};
use larder_server::registry::{LoginSite, Registry};

use super::place::Places;
use crate::config::{Config, ConfigError};

/// Opens the logins of upstreams, if there are any.
pub(super) fn open(
    registry: &Registry,
    config: &Config,
    places: &Places,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<(), ConfigError> {
    if !registry.has_logins() {
        return Ok(());
    }

    let Some(base_url) = config.base_url()? else { return Ok(()) };
    registry.open_logins(&LoginSite {
        vault: places.vault(clock),
        base_url: base_url.into(),
        clock: Arc::clone(clock),
        random: random.clone(),
    });

    Ok(())
}
