//! The session of an upstream over HTTP: it belongs to a session of a client, and any instance
//! goes on with it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use larder_store::session::{Notes, SessionError};
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};

use super::received::Capabilities;

/// The answer of a legacy server to `initialize`, as headers repeat it.
#[derive(Default, Clone)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
}

/// The session of one link.
#[derive(Default)]
pub(super) struct RemoteSession {
    pub(super) now: Mutex<Session>,
    /// Whether it goes on when the link ends.
    pub(super) outlives: Arc<AtomicBool>,
}

/// A session that another link can go on with.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedSession {
    id: String,
    version: Option<String>,
    /// The capabilities of the server.
    pub(super) capabilities: Capabilities,
}

impl RemoteSession {
    /// A session that goes on when its link ends, if that is set by then.
    pub(super) fn new(saved: Option<&SavedSession>, outlives: Arc<AtomicBool>) -> Self {
        let header = |text: &String| HeaderValue::from_str(text).ok();
        let now = Session {
            id: saved.and_then(|saved| header(&saved.id)),
            version: saved.and_then(|saved| saved.version.as_ref().and_then(header)),
        };
        Self { now: Mutex::new(now), outlives }
    }

    /// Remembers the version that `initialize` has negotiated.
    pub(super) fn negotiated(&self, version: Option<&str>) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        self.now.lock().version = version;
    }

    /// The server has not opened a session, or it is not used.
    pub(super) fn forget(&self) {
        *self.now.lock() = Session::default();
    }

    /// The state that another link needs to go on. `None` for a server without sessions.
    pub(super) fn save(&self, capabilities: Capabilities) -> Option<SavedSession> {
        let Session { id, version } = self.now.lock().clone();
        let text = |header: HeaderValue| header.to_str().ok().map(str::to_owned);
        let id = text(id?)?;
        let version = version.and_then(text);
        Some(SavedSession { id, version, capabilities })
    }
}

/// The slot of an upstream's session beside a client's session.
pub(super) struct KeptSession {
    notes: Arc<dyn Notes>,
    session: Arc<str>,
    upstream: Arc<str>,
    outlives: Arc<AtomicBool>,
}

impl KeptSession {
    pub(super) fn new(notes: &Arc<dyn Notes>, session: &Arc<str>, upstream: &str) -> Self {
        let notes = Arc::clone(notes);
        let session = Arc::clone(session);
        Self { notes, session, upstream: upstream.into(), outlives: Arc::new(true.into()) }
    }

    /// Whether the session goes on when a link ends.
    pub(super) fn outlives(&self) -> &Arc<AtomicBool> {
        &self.outlives
    }

    /// The client's session has ended: so does the upstream's.
    pub(super) fn end(&self) {
        self.outlives.store(false, Ordering::Relaxed);
    }

    /// The session, and a number for its next link: 1 for the second one.
    pub(super) async fn load(&self) -> Option<(SavedSession, u32)> {
        let (text, reads) =
            self.checked(self.notes.read(&self.session, &self.upstream).await)??;
        Some((serde_json::from_str(&text).ok()?, reads))
    }

    /// Keeps a session.
    pub(super) async fn save(&self, saved: &SavedSession) {
        let text = serde_json::to_string(saved).unwrap_or_default();
        self.checked(self.notes.keep(&self.session, &self.upstream, &text).await);
    }

    /// Forgets the session.
    pub(super) async fn forget(&self) {
        self.checked(self.notes.remove(&self.session, &self.upstream).await);
    }

    /// Keeps the session for as long as it is in use. Never returns.
    pub(super) async fn extend(&self) {
        loop {
            tokio::time::sleep(self.notes.extension()).await;
            self.checked(self.notes.extend(&self.session, &self.upstream).await);
        }
    }

    /// Whether the client's session has ended.
    pub(super) fn has_ended(&self) -> bool {
        !self.outlives.load(Ordering::Relaxed)
    }

    /// A failure costs other instances the session, not the call.
    fn checked<T>(&self, result: Result<T, SessionError>) -> Option<T> {
        result
            .inspect_err(|error| {
                tracing::warn!(upstream = &*self.upstream, %error, "a session is not shared");
            })
            .ok()
    }
}
