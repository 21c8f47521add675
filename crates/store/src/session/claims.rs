//! The parts of a session that an upstream needs, shared by several instances. [`Claims`] say which
//! instance holds a part that cannot move to another instance, such as a process. [`Notes`] keep
//! the text that another instance needs to continue a part that can move.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::SessionError;

/// The time-limited claims of this instance to parts of sessions.
#[async_trait]
pub trait Claims: Send + Sync + 'static {
    /// Claims a part of a session for this instance, or renews the claim. Returns whether this
    /// instance holds the part now.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the claims cannot be reached.
    async fn claim(&self, session: &str, part: &str) -> Result<bool, SessionError>;

    /// Gives a claim up. Does nothing if this instance does not hold it.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the claims cannot be reached.
    async fn release(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// The interval at which claims must be renewed.
    fn renewal(&self) -> Duration;
}

/// Texts that instances store with a session for each other.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Stores the text for a part of a session, in place of an earlier text. The text expires after
    /// the idle time of sessions unless [`extend`](Self::extend) is called.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the notes cannot be reached.
    async fn keep(&self, session: &str, part: &str, text: &str) -> Result<(), SessionError>;

    /// Returns the text and the number of reads so far, which is 1 for the first.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the notes cannot be reached.
    async fn read(&self, session: &str, part: &str) -> Result<Option<(String, u32)>, SessionError>;

    /// Extends the life of the text, if there is one.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the notes cannot be reached.
    async fn extend(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// Removes the text.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if the notes cannot be reached.
    async fn remove(&self, session: &str, part: &str) -> Result<(), SessionError>;

    /// The interval at which texts must be extended.
    fn extension(&self) -> Duration;
}

/// The claims and notes with which several instances share the parts of sessions.
#[derive(Clone)]
pub struct SharedParts {
    /// The claims to parts that cannot move.
    pub claims: Arc<dyn Claims>,
    /// The notes on parts that any instance can continue.
    pub notes: Arc<dyn Notes>,
}
