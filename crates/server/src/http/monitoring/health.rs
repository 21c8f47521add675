//! Health probes: whether the process is alive, whether it is ready, and whether what it
//! depends on is available. They are open to everyone and bypass the Host check, because
//! probes call by address. They report nothing else.
//!
//! Readiness looks at the process alone: all instances depend on the same store and issuers,
//! so an outage of one would take out all of them, and what needs no store would fail, too.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use http::StatusCode;
use larder_oauth::{Authenticator, Principal};
use larder_runtime::metric::{self, Label};
use larder_store::{
    session::{SessionError, Sessions},
    store::{Store, StoreError},
};
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    dispatch::Dispatcher,
    http::{error::Reply, response, route::Incoming},
};

/// The paths of the probes.
pub const PROBE_PATHS: [&str; 3] = [LIVENESS_PATH, READINESS_PATH, DEPENDENCIES_PATH];

pub(in crate::http) const LIVENESS_PATH: &str = "/healthz";
pub(in crate::http) const READINESS_PATH: &str = "/readyz";
pub(in crate::http) const DEPENDENCIES_PATH: &str = "/readyz/dependencies";

/// How long a part may take to respond. Probes give up soon after.
const CHECK_TIMEOUT: Duration = Duration::from_millis(800);
/// How long a report is cached, so that open probes cannot put load on the checked parts.
const REPORT_TTL: Duration = Duration::from_secs(1);

/// Checks the parts that the server depends on.
#[derive(Debug)]
pub struct Dependencies {
    store: Store,
    sessions: Arc<dyn Sessions>,
    authenticator: Arc<Authenticator>,
    dispatcher: Arc<Dispatcher>,

    /// Locked during a check, so that concurrent probes share one.
    last: Mutex<Option<(Instant, Report)>>,
}

/// Which parts are available.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each part is available or not")]
struct Report {
    store: bool,
    sessions: bool,
    keys: bool,
    upstreams: bool,

    /// Whether a list of an upstream is cut, or cannot be read.
    are_upstreams_degraded: bool,
    /// Why the store is not available although it responds.
    full: Option<String>,
}

impl Report {
    /// The parts by name.
    fn parts(&self) -> [(&'static str, bool); 4] {
        [
            ("store", self.store),
            ("sessions", self.sessions),
            ("keys", self.keys),
            ("upstreams", self.upstreams),
        ]
    }

    /// The parts that are available, but not with all that they have.
    fn degraded(&self) -> Vec<&'static str> {
        if self.are_upstreams_degraded { vec!["upstreams"] } else { Vec::new() }
    }

    fn is_complete(&self) -> bool {
        self.parts().iter().all(|(_, available)| *available)
    }
}

impl Dependencies {
    /// The parts whose state the probes report.
    pub fn new(
        store: Store,
        sessions: Arc<dyn Sessions>,
        authenticator: Arc<Authenticator>,
        dispatcher: Arc<Dispatcher>,
    ) -> Self {
        Self { store, sessions, authenticator, dispatcher, last: Mutex::default() }
    }

    /// Measures the gauge of the parts.
    pub async fn measure(&self) {
        for (name, available) in self.report().await.parts() {
            metric::gauge("larder_dependency_up", [("dependency", Label::fixed(name))])
                .set(u8::from(available));
        }
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
        let sessions = sessions.unwrap_or(false);
        let keys = keys.unwrap_or(false);
        let registry = self.dispatcher.registry();
        let upstreams = registry.providers_ready();
        let are_upstreams_degraded = registry.providers_degraded();
        let report = Report { store, sessions, keys, upstreams, are_upstreams_degraded, full };

        let previous = last.replace((Instant::now(), report.clone()));
        if previous.is_none_or(|(_, previous)| previous != report) {
            let Report { store, sessions, keys, upstreams, .. } = report;
            if report.is_complete() {
                tracing::info!("all dependencies are available");
            } else if let Some(reason) = &report.full {
                tracing::warn!(store, sessions, keys, upstreams, reason, "the store is full");
            } else {
                tracing::warn!(
                    store,
                    sessions,
                    keys,
                    upstreams,
                    "dependencies that are false do not respond"
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

pub(in crate::http) async fn alive(_: Incoming) -> Reply {
    Ok(json_response(StatusCode::OK, &json!({ "status": "alive" })))
}

pub(in crate::http) async fn ready(Incoming { endpoint, .. }: Incoming) -> Reply {
    if endpoint.stages.draining.is_cancelled() {
        return Ok(stopping());
    }
    Ok(json_response(StatusCode::OK, &json!({ "status": "ready" })))
}

pub(in crate::http) async fn dependencies(Incoming { endpoint, .. }: Incoming) -> Reply {
    if endpoint.stages.draining.is_cancelled() {
        return Ok(stopping());
    }

    let report = endpoint.dependencies.report().await;
    let (status, text) = if report.is_complete() {
        (StatusCode::OK, "available")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not available")
    };

    let mut body = json!({ "status": text });
    for (name, available) in report.parts() {
        body[name] = available.into();
    }
    let degraded = report.degraded();
    if !degraded.is_empty() {
        body["degraded"] = degraded.into();
    }
    if let Some(reason) = report.full {
        body["reason"] = reason.into();
    }

    Ok(json_response(status, &body))
}

fn stopping() -> Response {
    json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "stopping" }))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    response::json_response(status, body.to_string().into())
}
