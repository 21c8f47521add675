//! [`Base`]: the settings, the clock and the randomness from which every part is built.

use std::sync::Arc;

use larder_runtime::{
    clock::{Clock, SystemClock},
    random::Random,
};

use crate::config::Config;

/// The settings, the clock and the randomness of a server.
pub(crate) struct Base {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
}

impl Base {
    /// Settings with the clock and the randomness of the system.
    pub(crate) fn system(config: Config) -> Self {
        Self { config, clock: Arc::new(SystemClock), random: Random::system() }
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn random(&self) -> Random {
        self.random.clone()
    }
}
