//! How many tasks are kept, and for how long.

use std::time::Duration;

/// Bounds on tasks.
#[derive(Debug, Clone)]
pub struct TaskLimits {
    /// How long a task is kept, from its beginning. One that still runs then
    /// is cancelled.
    pub ttl: Duration,
    /// How often clients are told to ask.
    pub poll: Duration,
    /// Tasks of one owner, ended ones that are still kept included.
    pub per_owner: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60 * 60), poll: Duration::from_secs(1), per_owner: 1_000 }
    }
}
