//! CPU work that must not block the runtime's worker threads.

use std::panic;

use tokio::task::{JoinError, JoinHandle};

/// The input size up to which work runs inline: some tens of microseconds.
const INLINE_BYTES: usize = 16 * 1024;

/// CPU work on an input. Large inputs are processed on a blocking thread, so
/// that worker threads stay free for other requests.
pub(crate) enum Compute<T> {
    Done(T),
    Running(JoinHandle<T>),
}

impl<T: Send + 'static> Compute<T> {
    /// Starts work on an input of `bytes` bytes.
    pub(crate) fn run(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if bytes <= INLINE_BYTES {
            return Self::Done(work());
        }
        Self::Running(tokio::task::spawn_blocking(work))
    }

    /// Waits for the result. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        if let Self::Running(running) = self {
            *self = Self::Done(joined(running.await).await);
        }
    }

    /// The result.
    pub(crate) async fn done(self) -> T {
        match self {
            Self::Done(result) => result,
            Self::Running(running) => joined(running.await).await,
        }
    }
}

async fn joined<T>(result: Result<T, JoinError>) -> T {
    match result.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => panic::resume_unwind(panic),
        // The runtime is shutting down and drops this task too.
        Err(Err(_)) => std::future::pending().await,
    }
}
