//! [`Base`]: the settings, the clock and the randomness from which every part is built.

use std::sync::Arc;

use larder_runtime::{
    clock::{Clock, SystemClock},
    random::Random,
};
use larder_store::store::Backend;

use crate::config::{Config, ConfigError, StoreUrl};

/// The settings, the clock and the randomness of a server.
pub(crate) struct Base {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
    /// The backend that the code gives, in place of the backend of `store.url`.
    pub(crate) backend: Option<Arc<dyn Backend>>,
}

impl Base {
    /// Settings with the clock and the randomness of the system.
    pub(crate) fn system(config: Config) -> Self {
        Self { config, clock: Arc::new(SystemClock), random: Random::system(), backend: None }
    }

    /// Checks the settings, and that none of them names another store than the code gives.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.config.check()?;
        if self.backend.is_some() && self.config.store.place()? != StoreUrl::Memory {
            let problem = "this server has a store of its own; remove the setting (or --store)";
            return Err(ConfigError::new("store.url", problem));
        }
        Ok(())
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn random(&self) -> Random {
        self.random.clone()
    }
}
