//! Limits on the number and lifetime of tasks.

use std::time::Duration;

/// Limits on tasks.
#[derive(Debug, Clone)]
pub struct TaskLimits {
    /// How long a task is kept after its creation. A task that still runs at the end is cancelled.
    pub ttl: Duration,
    /// The polling interval suggested to clients.
    pub poll_interval: Duration,
    /// Maximum number of tasks of one owner, including ended ones that are still kept.
    pub per_owner: usize,
    /// Maximum number of tasks of all owners, including ended ones. Zero means unlimited.
    pub total: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60 * 60),
            poll_interval: Duration::from_secs(1),
            per_owner: 250,
            total: 5_000,
        }
    }
}
