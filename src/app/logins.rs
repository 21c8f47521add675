//! Gives the upstreams what logins need: a vault where the store is, and this server's URL.

use std::sync::Arc;

use larder_runtime::{clock::Clock, random::Random};
use larder_server::registry::{LoginSite, Registry};
use larder_store::vault::Vault;

use crate::config::{Config, ConfigError};

/// Opens the logins of upstreams, if there are any.
pub(super) fn open(
    registry: &Registry,
    config: &Config,
    vault: Vault,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<(), ConfigError> {
    let Some(base_url) = config.base_url()? else { return Ok(()) };

    registry.open_logins(&LoginSite {
        vault,
        base_url: base_url.into(),
        clock,
        random: random.clone(),
    });

    Ok(())
}
