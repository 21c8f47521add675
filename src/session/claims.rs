//! [`Claims`]: which instance has what belongs to a session and cannot move, such as a process,
//! and [`Notes`]: what any instance needs to go on with what can.

use std::{sync::Arc, time::Duration};

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
    fn renewal(&self) -> Duration;
}

/// Texts that instances keep with a session for each other.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Keeps a text for a part of a session. It expires unless it is extended, as an idle
    /// session does.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn keep(&self, session: &str, part: &str, text: &str) -> Result<(), SessionError>;

    /// The text, and how many times it was read: 1 the first time.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn read(&self, session: &str, part: &str) -> Result<Option<(String, u32)>, SessionError>;

    /// Extends the life of the text, if there is one.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn extend(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// Removes the text.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    async fn remove(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// The interval in which texts must be extended.
    fn extension(&self) -> Duration;
}

/// How several instances share what belongs to sessions.
#[derive(Clone)]
pub struct SharedParts {
    /// What cannot move.
    pub claims: Arc<dyn Claims>,
    /// What any instance can go on with.
    pub notes: Arc<dyn Notes>,
}
