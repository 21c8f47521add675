//! [`BuildError`]: all problems of a server's definition.

use crate::handler::ToolError;

/// All problems of a server's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    /// The problems. Each names its item.
    pub problems: Vec<String>,
}

impl BuildError {
    /// `Ok` if there are no problems.
    pub(super) fn check(list: Vec<String>) -> Result<(), Self> {
        if list.is_empty() { Ok(()) } else { Err(Self { problems: list }) }
    }
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.problems.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "the server's definition has {count} problem{s}")?;
        for text in &self.problems {
            write!(f, "\n  - {text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

impl From<BuildError> for ToolError {
    fn from(error: BuildError) -> Self {
        Self::new(error.to_string())
    }
}
