//! The keys that seal `requestState`: in a file, in the shared Redis, or of this process.

use larder_runtime::{key_ring::KeyRing, random::Random};
use larder_store::redis::StateKeys;

use crate::config::{Config, ConfigError};

/// The least length of a configured key, in bytes.
const MIN_LENGTH: usize = 32;

/// Where the keys come from.
pub(super) enum StateKey {
    /// The instance has the key from a file, or has a random one of its own.
    Fixed(KeyRing),
    /// All instances have the keys from their Redis.
    Shared(StateKeys),
}

impl StateKey {
    /// The key of `server.state_key_file`, or a random one.
    pub(super) fn of_process(config: &Config, random: &Random) -> Result<Self, ConfigError> {
        let Some(file) = &config.server.state_key_file else {
            let key = random.secret();
            return Ok(Self::Fixed(KeyRing::new(key.into_bytes())));
        };

        let problem = |problem: &dyn std::fmt::Display| {
            ConfigError::new("server.state_key_file", format!("{}: {problem}", file.display()))
        };

        let key = std::fs::read(file).map_err(|error| problem(&error))?;
        if key.trim_ascii().len() < MIN_LENGTH {
            return Err(problem(&format_args!("it must contain at least {MIN_LENGTH} bytes")));
        }

        Ok(Self::Fixed(KeyRing::new(key.trim_ascii())))
    }

    pub(super) fn ring(&self) -> KeyRing {
        match self {
            Self::Fixed(ring) => ring.clone(),
            Self::Shared(keys) => keys.ring().clone(),
        }
    }
}
