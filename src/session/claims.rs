//! [`Claims`]: which instance has what belongs to a session and cannot move, such as a process.

use async_trait::async_trait;

use super::SessionError;

/// Time-limited claims of this instance, where several instances serve the same sessions.
#[async_trait]
pub trait Claims: Send + Sync + 'static {
    /// Claims a part of a session for this instance, or renews the claim. Returns whether this
    /// instance has it now.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn claim(&self, session: &str, part: &str) -> Result<bool, SessionError>;

    /// Gives a claim up. Nothing happens if this instance does not have it.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn release(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// The interval in which claims must be renewed.
    fn renewal(&self) -> std::time::Duration;
}
