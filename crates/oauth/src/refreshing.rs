//! A cache of one document that an issuer publishes.
//!
//! Concurrent requests share one fetch. An old document is refreshed in the background. If a
//! fetch fails, the last good document stays in use.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::{Mutex, MutexGuard};

use super::AuthError;

/// The age at which a document is refreshed in the background.
pub(super) const MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// The delay before a failed refresh is retried.
const RETRY: Duration = Duration::from_secs(60);
/// The delay between fetches while there is no document at all.
pub(super) const BACKOFF: Duration = Duration::from_secs(5);

/// Fetches a document.
pub(crate) type Source<T> = Arc<dyn Fn() -> BoxFuture<'static, Result<T, String>> + Send + Sync>;

/// A fetch in progress.
pub(super) type Fetch = Shared<BoxFuture<'static, ()>>;

/// The cache, shared by all requests.
pub struct Refreshing<T> {
    source: Source<T>,
    pub(super) clock: Arc<dyn Clock>,
    // A plain mutex, because no lock is held across an await.
    state: Mutex<RefreshState<T>>,
}

struct RefreshState<T> {
    document: Option<Arc<T>>,
    /// The start of the last fetch.
    last_fetch: Option<Timestamp>,
    /// The error of the last fetch.
    failure: Option<String>,
    fetch: Option<Fetch>,
}

impl<T> RefreshState<T> {
    fn in_progress(&self) -> Option<Fetch> {
        self.fetch.clone().filter(|fetch| fetch.peek().is_none())
    }
}

impl<T: Send + Sync + 'static> Refreshing<T> {
    /// A document that is fetched when it is first needed.
    pub fn new(source: Source<T>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = RefreshState { document: None, last_fetch: None, failure: None, fetch: None };
        Arc::new(Self { source, clock, state: Mutex::new(state) })
    }

    /// The current document, and whether it was fetched for this call.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if no fetch has succeeded yet.
    pub async fn get(self: &Arc<Self>) -> Result<(Arc<T>, bool), AuthError> {
        let fetch = {
            let mut state = self.lock();
            let age = state.last_fetch.map(|start| self.clock.now().since(start));
            if let Some(document) = state.document.clone() {
                let max_age = if state.failure.is_some() { RETRY } else { MAX_AGE };
                if age.is_none_or(|age| age >= max_age) {
                    // The fetch runs in the background, because the document is still usable.
                    drop(self.start(&mut state));
                }
                return Ok((document, false));
            }

            match (state.in_progress(), &state.failure, age) {
                (Some(fetch), ..) => fetch,
                (None, Some(reason), Some(age)) if age < BACKOFF => {
                    return Err(unavailable(reason.clone(), BACKOFF));
                }
                _ => self.start(&mut state),
            }
        };
        fetch.await;

        let state = self.lock();
        match &state.document {
            Some(document) => Ok((Arc::clone(document), true)),
            None => Err(unavailable(state.failure.clone().unwrap_or_default(), BACKOFF)),
        }
    }

    /// The last good document.
    pub(super) fn current(&self) -> Option<Arc<T>> {
        self.lock().document.clone()
    }

    /// The error of the last fetch.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    pub(super) fn in_progress(&self) -> Option<Fetch> {
        self.lock().in_progress()
    }

    /// The fetch in progress, or a new one.
    pub(super) fn fetch(self: &Arc<Self>) -> Fetch {
        self.start(&mut self.lock())
    }

    /// Starts a fetch unless one is in progress. It completes even if nothing
    /// awaits it.
    fn start(self: &Arc<Self>, state: &mut RefreshState<T>) -> Fetch {
        if let Some(fetch) = state.in_progress() {
            return fetch;
        }

        state.last_fetch = Some(self.clock.now());
        let this = Arc::clone(self);
        let task = tokio::spawn(async move {
            let fetched = (this.source)().await;
            let mut state = this.lock();
            match fetched {
                Ok(document) => {
                    state.document = Some(Arc::new(document));
                    state.failure = None;
                }
                Err(reason) => {
                    tracing::warn!(reason, "an issuer's metadata or keys cannot be fetched");
                    state.failure = Some(reason);
                }
            }
            state.fetch = None;
        });

        let fetch = task.map(drop).boxed().shared();
        state.fetch = Some(fetch.clone());
        fetch
    }

    fn lock(&self) -> MutexGuard<'_, RefreshState<T>> {
        self.state.lock()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Refreshing<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let document = &self.state.lock().document;
        f.debug_struct("Refreshing").field("document", document).finish_non_exhaustive()
    }
}

pub(super) fn unavailable(reason: String, retry_after: Duration) -> AuthError {
    AuthError::Unavailable { reason, retry_after }
}
