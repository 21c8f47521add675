//! What a handler says when it cannot do what was asked.

use crate::{protocol::Fault, store::StoreError};

/// A tool's failure, in words for the model: what went wrong and what to do
/// about it. There is no blanket conversion from other errors, so that
/// nothing internal is shown by accident.
///
/// ```
/// use larder::ToolError;
///
/// fn check(n: i64) -> Result<i64, ToolError> {
///     if n < 0 { Err(ToolError::new("n must not be negative")) } else { Ok(n) }
/// }
/// assert_eq!(check(-1).unwrap_err().message(), "n must not be negative");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// A failure that the model is told in these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        log_internal(&error);
        Self::new(error.to_string())
    }
}

/// A resource handler's failure.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceError {
    /// There is nothing at that URI.
    NotFound,
    /// Something that has an error code of its own, such as a URI that asks for
    /// what cannot be.
    Fault(Fault),
    /// There is, but it cannot be given; the caller is told in these words.
    Failed(String),
}

impl ResourceError {
    pub(crate) fn into_fault(self, uri: &str) -> Fault {
        match self {
            Self::NotFound => Fault::resource_not_found(uri),
            Self::Fault(fault) => fault,
            Self::Failed(message) => Fault::Internal(message),
        }
    }
}

impl From<Fault> for ResourceError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StoreError> for ResourceError {
    fn from(error: StoreError) -> Self {
        log_internal(&error);
        if error.is_not_found() { Self::NotFound } else { Self::Failed(error.to_string()) }
    }
}

/// What whoever reads a resource is told: its details are in the log only.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        log_internal(&error);
        let message = error.to_string();
        match error {
            StoreError::NotFound { uri }
            | StoreError::Expired { uri, .. }
            | StoreError::NoRevision { uri, .. } => {
                Self::ResourceNotFound { uri: uri.as_str().to_owned(), message }
            }
            StoreError::InvalidUri(_) | StoreError::NoLines { .. } => Self::invalid_params(message),
            _ => Self::Unavailable(message),
        }
    }
}

/// The caller sees only the error's own text; what lies behind it goes here.
fn log_internal(error: &StoreError) {
    if error.is_internal() {
        tracing::error!(error = %error, source = ?std::error::Error::source(error), "store failed");
    }
}
