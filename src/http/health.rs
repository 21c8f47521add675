//! Probes: whether the process lives, and whether it can do its work. Open to
//! everyone and under any name, since probes call by address; they say nothing
//! but that.

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::State, response::Response, routing};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{Endpoint, error};
use crate::{
    auth::{Authenticator, Principal},
    session::{SessionError, Sessions},
    store::Store,
};

/// Paths that are taken by probes.
pub(crate) const OPEN_PATHS: [&str; 2] = [ALIVE, READY];

const ALIVE: &str = "/healthz";
const READY: &str = "/readyz";

/// What does not answer in this time is not ready: probes themselves give up
/// soon after.
const PATIENCE: Duration = Duration::from_millis(800);
/// How long an answer is good for: probes are open to everyone, and must not
/// make work for what they look at.
const FRESH: Duration = Duration::from_secs(1);

/// What the server needs for its work.
pub(crate) struct Readiness {
    store: Store,
    sessions: Arc<dyn Sessions>,
    authenticator: Arc<Authenticator>,
    /// Held while it is found out, so that all who ask meanwhile share one look.
    last: Mutex<Option<(Instant, Report)>>,
}

/// Which of the parts are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Report {
    store: bool,
    sessions: bool,
    keys: bool,
}

impl Report {
    fn ready(self) -> bool {
        self.store && self.sessions && self.keys
    }
}

impl Readiness {
    pub(crate) fn new(
        store: Store,
        sessions: Arc<dyn Sessions>,
        authenticator: Arc<Authenticator>,
    ) -> Self {
        Self { store, sessions, authenticator, last: Mutex::default() }
    }

    async fn report(&self) -> Report {
        let mut last = self.last.lock().await;
        if let Some((at, report)) = *last
            && at.elapsed() < FRESH
        {
            return report;
        }
        let store = async { self.store.ping().await.is_ok() };
        let keys = self.authenticator.is_ready();
        let (store, sessions, keys) = tokio::join!(
            timeout(PATIENCE, store),
            timeout(PATIENCE, self.sessions_answer()),
            timeout(PATIENCE, keys)
        );
        let report = Report {
            store: store.unwrap_or(false),
            sessions: sessions.unwrap_or(false),
            keys: keys.unwrap_or(false),
        };
        let before = last.replace((Instant::now(), report)).map(|(_, before)| before);
        if before != Some(report) {
            let Report { store, sessions, keys } = report;
            if report.ready() {
                tracing::info!("ready");
            } else {
                tracing::warn!(store, sessions, keys, "not ready: what is false does not answer");
            }
        }
        report
    }

    /// A session that nobody has is not found, where there is somebody to look.
    async fn sessions_answer(&self) -> bool {
        let nobody = self.sessions.get("probe", &Principal::Local).await;
        matches!(nobody, Ok(_) | Err(SessionError::NotFound))
    }
}

pub(super) fn routes() -> Router<Arc<Endpoint>> {
    Router::new().route(ALIVE, routing::get(alive)).route(READY, routing::get(ready))
}

async fn alive() -> Response {
    said(StatusCode::OK, &json!({ "status": "alive" }))
}

async fn ready(State(endpoint): State<Arc<Endpoint>>) -> Response {
    if endpoint.closing.is_cancelled() {
        return said(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "stopping" }));
    }
    let report = endpoint.readiness.report().await;
    let (status, text) = if report.ready() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let Report { store, sessions, keys } = report;
    said(status, &json!({ "status": text, "store": store, "sessions": sessions, "keys": keys }))
}

fn said(status: StatusCode, body: &Value) -> Response {
    error::json(status, body.to_string().into())
}
