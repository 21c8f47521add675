//! Opens the logins of upstreams: with a vault for the tokens, and this server's URL.

use larder_server::registry::{LoginSite, Registry};

use super::{base::Base, place::Places};
use crate::config::ConfigError;

/// Opens the logins of upstreams, if there are any.
pub(super) fn open(registry: &Registry, base: &Base, places: &Places) -> Result<(), ConfigError> {
    if !registry.has_logins() {
        return Ok(());
    }

    let Some(base_url) = base.config.base_url()? else { return Ok(()) };
    registry.open_logins(&LoginSite {
        vault: places.vault(base),
        base_url: base_url.into(),
        clock: base.clock(),
        random: base.random(),
    });

    Ok(())
}
