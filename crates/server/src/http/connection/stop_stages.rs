//! The stages of a stop, in order: proxies must learn of it before connections are refused,
//! and connections be refused before clients reconnect.

use tokio_util::sync::CancellationToken;

/// The stages of a graceful stop, one after the other.
#[derive(Debug, Clone, Default)]
pub struct StopStages {
    /// Cancelled at the stop. Connections are still accepted, and each response closes its own.
    pub draining: CancellationToken,
    /// Cancelled when no more connections are accepted: a client whose stream ends now
    /// reconnects to another instance.
    pub closing: CancellationToken,
}
