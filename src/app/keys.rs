//! [`Keys`]: the keys that seal `requestState`, links and the secrets of the vault.

use larder_runtime::key_ring::{KeyRing, SecretKey};
use larder_store::redis::StateKeys;

use super::base::Base;
use crate::config::ConfigError;

/// The least length of a configured key, in bytes.
const MIN_LENGTH: usize = 32;

/// The keys of a server.
pub(super) struct Keys {
    /// The key of `server.state_key_file`, or a random key of this process.
    own: KeyRing,
    /// The keys in Redis, which all instances share and which are replaced every day.
    shared: Option<StateKeys>,
}

impl Keys {
    /// The key of `server.state_key_file`, or a random one.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(super) fn of_process(base: &Base) -> Result<Self, ConfigError> {
        let Some(file) = &base.config.server.state_key_file else {
            let key = base.random.secret();
            return Ok(Self { own: KeyRing::new(key.into_bytes()), shared: None });
        };

        let problem = |problem: &dyn std::fmt::Display| {
            ConfigError::new("server.state_key_file", format!("{}: {problem}", file.display()))
        };

        let key = std::fs::read(file).map_err(|error| problem(&error))?;
        if key.trim_ascii().len() < MIN_LENGTH {
            return Err(problem(&format_args!("it must contain at least {MIN_LENGTH} bytes")));
        }

        Ok(Self { own: KeyRing::new(key.trim_ascii()), shared: None })
    }

    /// These keys, with `requestState` and links sealed by the keys that instances share.
    pub(super) fn shared_by(self, keys: StateKeys) -> Self {
        Self { shared: Some(keys), ..self }
    }

    /// The keys that seal `requestState` and links.
    pub(super) fn ring(&self) -> KeyRing {
        self.shared.as_ref().map_or(&self.own, StateKeys::ring).clone()
    }

    /// The key of the vault, which outlives the keys in Redis.
    pub(super) fn lasting(&self) -> SecretKey {
        self.own.current()
    }
}
