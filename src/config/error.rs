//! Configuration errors.

/// A configuration error. It names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// An error in one setting.
    pub fn new(setting: &str, problem: impl std::fmt::Display) -> Self {
        Self(format!("{setting}: {problem}"))
    }

    /// An error of the whole configuration.
    pub(super) fn unreadable(problem: impl std::fmt::Display) -> Self {
        Self(format!("The configuration is invalid: {problem}"))
    }

    pub(super) fn require_positive(setting: &str, value: u64) -> Result<(), Self> {
        if value == 0 { Err(Self::new(setting, "it must be more than 0")) } else { Ok(()) }
    }
}
