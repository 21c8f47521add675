//! How much is kept, and for how long.

use std::time::Duration;

/// Bounds on sessions and their streams.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    /// How long a session lives without a request or an open stream.
    pub idle: Duration,
    /// How long a finished stream can still be resumed.
    pub replay: Duration,
    /// Sessions of one principal.
    pub sessions_per_principal: usize,
    /// Streams of one session, finished ones that can be resumed included.
    pub streams_per_session: usize,
    /// Subscribed resources of one session.
    pub subscriptions_per_session: usize,
    /// Messages kept of one stream.
    pub events_per_stream: usize,
    /// Bytes kept of one stream; the newest message is kept whatever its size.
    pub bytes_per_stream: usize,
    /// How long a message is kept while others come after it.
    pub message_age: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60 * 60),
            replay: Duration::from_secs(5 * 60),
            sessions_per_principal: 100_000,
            streams_per_session: 64,
            subscriptions_per_session: 1_000,
            events_per_stream: 10_000,
            bytes_per_stream: 4 << 20,
            message_age: Duration::from_secs(60 * 60),
        }
    }
}
