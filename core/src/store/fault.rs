//! Errors of the store as clients receive them.

use super::StoreError;
use crate::protocol::Fault;

impl StoreError {
    /// Logs an internal error with its cause. The caller gets only the error's own text.
    #[doc(hidden)]
    pub fn log_internal(&self) {
        if self.is_internal() {
            let source = std::error::Error::source(self);
            tracing::error!(error = %self, ?source, "store failed");
        }
    }
}

/// Converts an error for the caller. Internal details go to the log only.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        error.log_internal();
        let message = error.to_string();

        match error {
            StoreError::NotFound { uri }
            | StoreError::Expired { uri, .. }
            | StoreError::NoRevision { uri, .. } => {
                Self::ResourceNotFound { uri: uri.as_str().to_owned(), message }
            }
            StoreError::InvalidUri(_)
            | StoreError::NoLines { .. }
            | StoreError::InvalidMetadata { .. } => Self::invalid_params(message),
            StoreError::Busy(busy) => busy.into(),
            StoreError::Corrupt { .. } => Self::Internal(message),
            _ => Self::Unavailable(message),
        }
    }
}
