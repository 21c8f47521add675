//! Health probes: whether the process is alive and ready. They are open to everyone and
//! bypass the Host check, because probes call by address. They report nothing else.

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
    dispatch::Dispatcher,
    session::{SessionError, Sessions},
    store::{Store, StoreError},
};

/// The paths of the probes.
pub(crate) const PROBE_PATHS: [&str; 2] = [LIVENESS_PATH, READINESS_PATH];

const LIVENESS_PATH: &str = "/healthz";
const READINESS_PATH: &str = "/readyz";

/// How long a part may take to respond. Probes give up soon after.
const CHECK_TIMEOUT: Duration = Duration::from_millis(800);
/// How long a report is cached, so that open probes cannot put load on the checked parts.
const REPORT_TTL: Duration = Duration::from_secs(1);

/// Checks the parts that the server depends on.
pub(crate) struct Readiness {
    store: Store,
    sessions: Arc<dyn Sessions>,
    authenticator: Arc<Authenticator>,
    dispatcher: Arc<Dispatcher>,
    /// Locked during a check, so that concurrent probes share one.
    last: Mutex<Option<(Instant, Report)>>,
}

/// Which parts are ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each part is ready or not")]
struct Report {
    store: bool,
    sessions: bool,
    keys: bool,
    upstreams: bool,
    /// Why the store is not ready although it responds.
    full: Option<String>,
}

impl Report {
    fn ready(&self) -> bool {
        self.store && self.sessions && self.keys && self.upstreams
    }
}

impl Readiness {
    pub(crate) fn new(
        store: Store,
        sessions: Arc<dyn Sessions>,
        authenticator: Arc<Authenticator>,
        dispatcher: Arc<Dispatcher>,
    ) -> Self {
        Self { store, sessions, authenticator, dispatcher, last: Mutex::default() }
    }

    async fn report(&self) -> Report {
        let mut last = self.last.lock().await;
        if let Some((checked_at, report)) = &*last
            && checked_at.elapsed() < REPORT_TTL
        {
            return report.clone();
        }
        let store = async {
            match self.store.ping().await {
                Ok(()) => (true, None),
                Err(StoreError::Full(reason)) => (false, Some(reason)),
                Err(_) => (false, None),
            }
        };
        let keys = self.authenticator.is_ready();
        let (store, sessions, keys) = tokio::join!(
            timeout(CHECK_TIMEOUT, store),
            timeout(CHECK_TIMEOUT, self.sessions_respond()),
            timeout(CHECK_TIMEOUT, keys)
        );
        let (store, full) = store.unwrap_or((false, None));
        let (sessions, keys) = (sessions.unwrap_or(false), keys.unwrap_or(false));
        let upstreams = self.dispatcher.registry().providers_ready();
        let report = Report { store, sessions, keys, upstreams, full };
        let previous = last.replace((Instant::now(), report.clone()));
        if previous.is_none_or(|(_, previous)| previous != report) {
            if report.ready() {
                tracing::info!("ready");
            } else if let Some(reason) = &report.full {
                tracing::warn!(store, sessions, keys, reason, "not ready: the store is full");
            } else {
                tracing::warn!(
                    store,
                    sessions,
                    keys,
                    upstreams,
                    "not ready: parts that are false do not respond"
                );
            }
        }
        report
    }

    /// Looks up a session that does not exist. A working store reports it as not found.
    async fn sessions_respond(&self) -> bool {
        let result = self.sessions.get("probe", &Principal::Local).await;
        matches!(result, Ok(_) | Err(SessionError::NotFound))
    }
}

pub(super) fn routes() -> Router<Arc<Endpoint>> {
    Router::new()
        .route(LIVENESS_PATH, routing::get(alive))
        .route(READINESS_PATH, routing::get(ready))
}

async fn alive() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "alive" }))
}

async fn ready(State(endpoint): State<Arc<Endpoint>>) -> Response {
    if endpoint.closing.is_cancelled() {
        return json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "stopping" }));
    }
    let report = endpoint.readiness.report().await;
    let (status, text) = if report.ready() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let Report { store, sessions, keys, upstreams, full } = report;
    let mut body = json!({
        "status": text,
        "store": store,
        "sessions": sessions,
        "keys": keys,
        "upstreams": upstreams,
    });
    if let Some(reason) = full {
        body["reason"] = reason.into();
    }
    json_response(status, &body)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    error::json_response(status, body.to_string().into())
}
