//! [`StepResult`]: how a step has ended.

use super::SourceError;

/// The result of a step.
pub(super) enum StepResult {
    Done,
    Skipped(String),
    Failed { reason: String, retryable: bool },
}

impl StepResult {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), retryable: false }
    }

    /// Why the step was skipped or has failed.
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::Done => String::new(),
            Self::Skipped(reason) | Self::Failed { reason, .. } => reason,
        }
    }
}

/// The result of a step that lacks a value: skipped if an optional value is
/// missing, failed otherwise.
pub(super) fn missing_value(location: &str, error: &SourceError) -> StepResult {
    match error {
        SourceError::NoArgument(_) | SourceError::NotBound(_) => {
            StepResult::Skipped(format!("{location} has no value: {error}"))
        }
        _ => StepResult::failed(format!("{location} has no value: {error}")),
    }
}
