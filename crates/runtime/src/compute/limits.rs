//! The limits of CPU work.

use std::{num::NonZeroUsize, sync::LazyLock, thread, time::Duration};

/// The cores that this process may use. Finding out reads several files, so it is done
/// once.
static CORES: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(2, NonZeroUsize::get));

/// Limits of the CPU work of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeLimits {
    /// The number of threads; 0 for one more than the machine has cores.
    pub threads: usize,
    /// How many pieces of work of one owner may wait for a thread.
    pub queued_per_owner: usize,
    /// How many pieces of work may wait for a thread in all.
    pub queued: usize,
    /// How many searches run at the same time; half of them for one owner.
    pub searches: usize,
    /// How long one search may take.
    pub search_time: Duration,
}

impl Default for ComputeLimits {
    /// Sized for two cores and 1 GiB of memory.
    fn default() -> Self {
        Self {
            threads: 0,
            queued_per_owner: 512,
            queued: 2048,
            searches: 6,
            search_time: Duration::from_secs(10),
        }
    }
}

impl ComputeLimits {
    /// The number of threads, resolved.
    pub(super) fn threads(&self) -> usize {
        if self.threads > 0 { self.threads } else { *CORES + 1 }
    }
}

/// The error when too much work waits for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// Too much work of this owner waits.
    #[error(
        "The server is busy with your other calls: {limit} pieces of work wait already ({setting}). Try again when some calls have ended."
    )]
    Owner {
        /// The limit's value.
        limit: usize,
        /// The setting of the limit.
        setting: &'static str,
    },
    /// Too much work of all owners waits.
    #[error(
        "The server is busy: {limit} pieces of work wait already ({setting}). Try again shortly."
    )]
    All {
        /// The limit's value.
        limit: usize,
        /// The setting of the limit.
        setting: &'static str,
    },
}
