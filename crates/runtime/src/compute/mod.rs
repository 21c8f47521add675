//! CPU work that must not block the runtime's worker threads: compression, hashes,
//! regular expressions, previews, large JSON.
//!
//! One pool of about as many threads as the machine has cores runs all of it. Owners
//! take turns, and a caller that leaves cancels its work.

mod limits;
mod pool;
mod queue;
mod slots;

use std::{sync::LazyLock, time::Duration};

pub use self::limits::Busy;
pub use self::{
    limits::ComputeLimits,
    pool::{Running, Stop},
    slots::Slot,
};
use self::{pool::Pool, slots::Slots};

/// The input size up to which work of linear cost runs inline: some tens of
/// microseconds.
pub const INLINE_BYTES: usize = 16 * 1024;

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(ComputeLimits::default()));
static SEARCHES: LazyLock<Slots> = LazyLock::new(|| Slots::new(&ComputeLimits::default()));
static VIEWS: LazyLock<Slots> = LazyLock::new(|| Slots::new(&ComputeLimits::default()));

/// Sets the limits of this process.
pub fn configure(limits: ComputeLimits) {
    SEARCHES.set_limits(&limits);
    VIEWS.set_limits(&limits);
    POOL.set_limits(limits);
}

/// How long one search may take.
pub fn search_time() -> Duration {
    POOL.limits().search_time
}

/// Waits until a search of this owner may begin. Searches need memory for their
/// regular expressions, so only a few run at the same time.
///
/// # Errors
/// Too many searches wait.
pub async fn search_slot(owner: &str) -> Result<Slot, Busy> {
    SEARCHES.acquire(owner).await
}

/// Waits until this owner may hold another decoded text in memory. There are as many at the same
/// time as searches. A search of such a text needs a slot of its own besides.
///
/// # Errors
/// Too many wait.
pub async fn view_slot(owner: &str) -> Result<Slot, Busy> {
    VIEWS.acquire(owner).await
}

/// CPU work: finished, or in the pool. Dropping it cancels the work.
pub enum Compute<T> {
    /// The result, or why the pool refused the work.
    Done(Result<T, Busy>),
    /// The work waits or runs in the pool.
    Running(Running<T>),
}

impl<T: Send + 'static> Compute<T> {
    /// Starts work of linear cost on an input of `bytes` bytes. A small input is
    /// processed at once.
    pub fn run(owner: &str, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if bytes <= INLINE_BYTES {
            return Self::Done(Ok(work()));
        }
        Self::queue(owner, |_| work())
    }

    /// Starts work whose cost does not follow from the size of its input. The work returns early,
    /// with any result, once it is told to stop.
    pub fn queue(owner: &str, work: impl FnOnce(&Stop) -> T + Send + 'static) -> Self {
        match POOL.submit(owner, work) {
            Ok(running) => Self::Running(running),
            Err(busy) => Self::Done(Err(busy)),
        }
    }

    /// Waits for the result. Cancel safe.
    pub async fn wait(&mut self) {
        if let Self::Running(running) = self {
            let result = running.result().await;
            *self = Self::Done(Ok(result));
        }
    }

    /// The result.
    ///
    /// # Errors
    /// Too much work waits.
    pub async fn done(self) -> Result<T, Busy> {
        match self {
            Self::Done(result) => result,
            Self::Running(mut running) => Ok(running.result().await),
        }
    }
}
