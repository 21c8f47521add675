//! What is wrong with the configuration.

/// What is wrong with the configuration, naming the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// That setting is wrong in that way.
    pub fn new(setting: &str, problem: impl std::fmt::Display) -> Self {
        Self(format!("{setting}: {problem}"))
    }

    /// The whole cannot be read.
    pub(super) fn unreadable(problem: impl std::fmt::Display) -> Self {
        Self(format!("The configuration cannot be used: {problem}"))
    }

    pub(super) fn unless_positive(setting: &str, value: u64) -> Result<(), Self> {
        if value == 0 { Err(Self::new(setting, "it must be more than 0")) } else { Ok(()) }
    }
}
