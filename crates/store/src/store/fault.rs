//! Errors of the store as clients receive them.

use std::time::Duration;

use larder_protocol::Fault;
use larder_runtime::compute::Busy;

use super::StoreError;

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
            StoreError::Busy(busy) => busy_fault(busy),
            StoreError::Corrupt { .. } => Self::Internal(message),
            _ => Self::Unavailable(message),
        }
    }
}

/// The fault of a request whose work cannot wait for a thread of the pool.
pub fn busy_fault(busy: Busy) -> Fault {
    let message = busy.to_string();
    let retry_after = Duration::from_secs(1);

    match busy {
        Busy::Owner { .. } => Fault::Limited { message, retry_after },
        Busy::All { .. } => Fault::Busy { message, retry_after },
    }
}
