//! [`OpenError`]: the reason why a server cannot be opened.

#[cfg(feature = "cli")]
use larder_store::redis::layout::LayoutError;
use larder_store::{redis::RedisError, store::LocationError};

use crate::config::ConfigError;

/// The reason why a server cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Redis cannot be used.
    #[error("{setting}{error}", setting = if needs_action(.0) { "" } else { "store.url: " }, error = .0)]
    Redis(#[from] RedisError),
    /// The directory or the bucket cannot be used.
    #[error("store.url: {0}")]
    Objects(#[from] LocationError),
    /// The directory or the bucket for large content cannot be used.
    #[error("store.blobs: {0}")]
    Blobs(#[source] LocationError),
    /// The Redis of the sessions cannot be used.
    #[error("sessions.url: {0}")]
    Sessions(#[source] RedisError),
}

impl OpenError {
    /// Whether data has an older layout.
    #[cfg(feature = "cli")]
    pub(crate) fn needs_migration(&self) -> bool {
        let (Self::Redis(error) | Self::Sessions(error)) = self else { return false };
        matches!(error, RedisError::Layout(LayoutError::Older { .. }))
    }

    /// Whether the user has to change a setting or run a migration, rather than retry.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Redis(error) | Self::Sessions(error) => needs_action(error),
            Self::Objects(error) | Self::Blobs(error) => matches!(error, LocationError::Setting(_)),
        }
    }
}

/// Whether the error itself names the setting or the next step.
fn needs_action(error: &RedisError) -> bool {
    matches!(error, RedisError::Setting(_) | RedisError::Layout(_))
}
