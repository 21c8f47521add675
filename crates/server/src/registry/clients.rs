//! [`SessionClients`]: how providers reach the clients of sessions outside of calls.

use async_trait::async_trait;
use larder_oauth::Principal;
use larder_protocol::Outgoing;
use serde_json::Value;

/// Why a client outside of a call has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// No connection follows the session's own stream now, so nothing was sent.
    NoConnection,
    /// The client refused, or the session has ended; the text says which.
    Refused(String),
}

/// The clients of sessions.
#[async_trait]
pub trait SessionClients: Send + Sync {
    /// Sends a request on the session's own stream, and waits for the result without a limit of
    /// time.
    ///
    /// # Errors
    /// [`NoAnswer`].
    async fn ask(
        &self,
        session: &str,
        principal: &Principal,
        method: &'static str,
        params: Value,
    ) -> Result<Value, NoAnswer>;

    /// Sends a notification on the session's own stream. Returns whether a connection follows it.
    async fn notify(&self, session: &str, principal: &Principal, notification: Outgoing) -> bool;

    /// Whether the session exists. `true` if that cannot be found out. Does not extend its expiry.
    async fn exists(&self, session: &str, principal: &Principal) -> bool;
}
