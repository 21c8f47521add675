//! Limits on the number, size and lifetime of sessions and streams.

use std::time::Duration;

/// Limits on sessions and their streams.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    /// How long a session exists without a request or an open stream.
    pub idle: Duration,
    /// How long a finished stream can be resumed.
    pub replay: Duration,
    /// Maximum number of sessions of one principal.
    pub sessions_per_principal: usize,
    /// Maximum number of sessions of all principals. Zero means unlimited.
    pub sessions_total: usize,
    /// Maximum number of streams of a session, including finished ones that can be resumed.
    pub streams_per_session: usize,
    /// Maximum number of resources that a session subscribes to.
    pub subscriptions_per_session: usize,
    /// Maximum number of messages that a stream keeps.
    pub events_per_stream: usize,
    /// Maximum number of bytes that a stream keeps. The newest message is kept regardless of its
    /// size.
    pub bytes_per_stream: usize,
    /// How long a message is kept after newer ones arrive.
    pub message_age: Duration,
    /// Maximum number of bytes in the streams of one principal that one process has finished
    /// and keeps for resumption.
    pub replay_bytes_per_principal: usize,
    /// Maximum number of such bytes of all principals.
    pub replay_bytes: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60 * 60),
            replay: Duration::from_secs(5 * 60),
            sessions_per_principal: 10_000,
            sessions_total: 50_000,
            streams_per_session: 64,
            subscriptions_per_session: 1_000,
            events_per_stream: 10_000,
            bytes_per_stream: 4 << 20,
            message_age: Duration::from_secs(60 * 60),
            replay_bytes_per_principal: 16 << 20,
            replay_bytes: 64 << 20,
        }
    }
}
