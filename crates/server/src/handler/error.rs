//! The errors that handlers return.

use std::{
    error::Error,
    fmt::{self, Write},
    sync::Arc,
};

use larder_protocol::Fault;
use larder_store::store::StoreError;

/// A tool's error. The message is for the model: it says what was wrong and what
/// to do. There is no conversion from every error type, so that no internal
/// details are sent by accident.
///
/// ```
/// use larder_server::ToolError;
///
/// fn check(n: i64) -> Result<i64, ToolError> {
///     if n < 0 { Err(ToolError::new("n must not be negative")) } else { Ok(n) }
/// }
/// assert_eq!(check(-1).unwrap_err().message(), "n must not be negative");
/// ```
#[derive(Debug, Clone)]
pub struct ToolError {
    message: String,
    is_permanent: bool,
    /// The cause, for the log.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// The result of a handler.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

impl PartialEq for ToolError {
    fn eq(&self, other: &Self) -> bool {
        (&self.message, self.is_permanent) == (&other.message, other.is_permanent)
    }
}

impl Eq for ToolError {}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_permanent: false, cause: None }
    }

    /// An error that the same call would meet again, such as invalid arguments. Steps
    /// of workflows do not retry it, and the result says so in its `_meta`
    /// (`larder/retryable`).
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_permanent: true, cause: None }
    }

    /// The message for the model.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call would meet the error again.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// Logs the cause of the error, when the error becomes a response.
    pub(crate) fn log(&self) {
        let Some(cause) = &self.cause else { return };

        let mut chain = cause.to_string();
        let mut source = cause.source();

        while let Some(error) = source {
            // Writing to a string does not fail.
            let _ = write!(chain, ": {error}");
            source = error.source();
        }

        tracing::error!(error = %self.message, cause = %chain, "a handler failed");
    }
}

/// Says in words for the model what an error means: `read(path).context("The file cannot be
/// read now.")?`.
///
/// The model reads the text. The error and all its sources go to the log. The error may be of
/// any type that implements `Error`, a boxed error, an `anyhow::Error`, or a [`ToolError`]. The
/// model reads the outermost text only.
///
/// ```
/// use larder_server::{ErrorContext, ToolError};
///
/// fn parse(text: &str) -> Result<u8, ToolError> {
///     text.parse::<u8>().context("Give a number from 0 to 255.")
/// }
/// assert_eq!(parse("x").unwrap_err().message(), "Give a number from 0 to 255.");
///
/// let first: Option<u8> = None;
/// assert_eq!(first.context("There is none.").unwrap_err().message(), "There is none.");
/// ```
pub trait ErrorContext<T> {
    /// The value, or an error with this text for the model.
    fn context(self, message: impl Into<String>) -> Result<T, ToolError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> ErrorContext<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T, ToolError> {
        self.map_err(|cause| {
            let cause = cause.into();
            let is_permanent =
                cause.downcast_ref::<ToolError>().is_some_and(ToolError::is_permanent);
            ToolError { message: message.into(), is_permanent, cause: Some(Arc::from(cause)) }
        })
    }
}

impl<T> ErrorContext<T> for Option<T> {
    fn context(self, message: impl Into<String>) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::new(message))
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        error.log_internal();
        let is_permanent = !error.is_temporary();
        Self { message: error.to_string(), is_permanent, cause: None }
    }
}

/// The error of a resource handler.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceError {
    /// No resource has that URI.
    NotFound,
    /// A protocol error with its own code, such as invalid parameters in the URI.
    Fault(Fault),
    /// The resource exists but cannot be read. The message is for the caller.
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
        if error.is_temporary() {
            return Self::Fault(error.into());
        }

        error.log_internal();
        if error.is_not_found() { Self::NotFound } else { Self::Failed(error.to_string()) }
    }
}

impl From<ToolError> for ResourceError {
    fn from(error: ToolError) -> Self {
        error.log();
        Self::Failed(error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_runtime::compute::Busy;

    #[test]
    fn errors_that_may_pass_are_not_permanent() {
        let busy = StoreError::Busy(Busy::All { limit: 1, setting: "compute.queued" });
        let temporary = [busy, StoreError::Full("full".into())];
        assert!(!temporary.map(ToolError::from).iter().any(ToolError::is_permanent));
        assert!(ToolError::from(StoreError::InvalidTtl("no".into())).is_permanent());
    }
}
