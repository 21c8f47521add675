//! Work that would keep a worker of the runtime from those it serves.

use std::panic;

use tokio::task::{JoinError, JoinHandle};

/// How much a worker of the runtime takes on by itself: some tens of microseconds.
const INLINE_BYTES: usize = 16 * 1024;

/// Work on that many bytes, on a thread for such work if they are many: the
/// runtime's own workers have others to serve.
pub(crate) enum Compute<T> {
    Done(T),
    Running(JoinHandle<T>),
}

impl<T: Send + 'static> Compute<T> {
    pub(crate) fn run(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if bytes <= INLINE_BYTES {
            return Self::Done(work());
        }
        Self::Running(tokio::task::spawn_blocking(work))
    }

    /// Waits until it is done. Can be cancelled and called again.
    pub(crate) async fn wait(&mut self) {
        if let Self::Running(running) = self {
            *self = Self::Done(joined(running.await).await);
        }
    }

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
        // The runtime ends, and this with it.
        Err(Err(_)) => std::future::pending().await,
    }
}
