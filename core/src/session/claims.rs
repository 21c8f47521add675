//! The parts of a session that an upstream needs, shared by several instances. [`Claims`] say
//! which instance holds a part that cannot move to another one, such as a process. [`Notes`]
//! keep what another instance needs to continue a part that can.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::SessionError;

/// The time-limited claims of this instance to parts of sessions.
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

    /// The interval at which claims must be renewed.
    fn renewal(&self) -> Duration;
}

/// Texts that instances store with a session for each other.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Stores the text for a part of a session, in place of an earlier one. It expires after the
    /// idle time of sessions unless [`extend`](Self::extend) is called.
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

    /// The interval at which texts must be extended.
    fn extension(&self) -> Duration;
}

/// How several instances share the parts of sessions.
#[derive(Clone)]
pub struct SharedParts {
    /// For the parts that cannot move.
    pub claims: Arc<dyn Claims>,
    /// For the parts that any instance can continue.
    pub notes: Arc<dyn Notes>,
}
