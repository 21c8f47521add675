//! What is counted and measured, for Prometheus. Whoever counts something uses
//! the macros of the `metrics` crate under a name of this table; where nobody
//! has begun to collect, they do nothing.
//!
//! Names: OpenTelemetry's where it has one (HTTP, MCP), in the form that
//! Prometheus gives them; else `larder_`, with the unit, and `_total` where it
//! only grows.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// The same of what several servers may share: see [`Inventory`](super::Inventory).
    SharedGauge,
    /// How often which values came.
    Histogram,
}

/// Every metric that there is: kind, name, what it says.
pub const METRICS: [(Kind, &str, &str); 17] = [
    (
        Kind::Histogram,
        "mcp_server_operation_duration_seconds",
        "How long requests of the protocol took to their result, by method, tool and outcome.",
    ),
    (
        Kind::Histogram,
        "http_server_request_duration_seconds",
        "How long HTTP requests took to the head of their answer, by method and status.",
    ),
    (Kind::Gauge, "http_server_active_requests", "HTTP requests whose answer has not begun."),
    (Kind::Gauge, "larder_connections", "Open connections."),
    (
        Kind::Counter,
        "larder_connections_refused_total",
        "Connections refused because there were too many (limits.connections).",
    ),
    (Kind::Gauge, "larder_streams", "Open event streams."),
    (Kind::Gauge, "larder_calls", "Requests of the protocol that run."),
    (
        Kind::SharedGauge,
        "larder_sessions",
        "Sessions of clients before 2026-07-28 that live, by where they are kept.",
    ),
    (Kind::Counter, "larder_sessions_started_total", "Sessions that clients began."),
    (Kind::Counter, "larder_sessions_ended_total", "Sessions that clients ended."),
    (Kind::SharedGauge, "larder_resources", "Resources of all owners, by where they are kept."),
    (
        Kind::SharedGauge,
        "larder_resource_bytes",
        "Bytes of their content, counted before compression, by where they are kept.",
    ),
    (Kind::Counter, "larder_resources_written_total", "Resources created or given new content."),
    (Kind::Counter, "larder_resources_deleted_total", "Resources removed before they expired."),
    (
        Kind::Counter,
        "larder_resources_refused_total",
        "Writes that were refused or failed: quota, content, store.",
    ),
    (Kind::Counter, "larder_stored_bytes_total", "Bytes of content taken in."),
    (
        Kind::Counter,
        "larder_context_kept_out_bytes_total",
        "Bytes that calls put by as resources beyond what came with the request or went out with its result: what no model had to read.",
    ),
];

/// From a cache hit to a long job.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// How often histograms are tidied between scrapes.
const TIDY: Duration = Duration::from_secs(5);

/// The collected metrics.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Begins to collect, in the whole process.
    ///
    /// # Errors
    /// When somebody else collects already.
    pub fn install() -> Result<Self, String> {
        let suffix = Matcher::Suffix("_seconds".into());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(suffix, &SECONDS);
        let recorder = builder.map_err(|e| e.to_string())?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|e| e.to_string())?;
        for (kind, name, says) in METRICS {
            match kind {
                // What never happened is 0, not missing: alerts look at it.
                Kind::Counter => {
                    metrics::describe_counter!(name, says);
                    metrics::counter!(name).absolute(0);
                }
                Kind::Gauge => {
                    metrics::describe_gauge!(name, says);
                    metrics::gauge!(name).set(0.0);
                }
                // It has a label, and is there once somebody has looked.
                Kind::SharedGauge => metrics::describe_gauge!(name, says),
                Kind::Histogram => metrics::describe_histogram!(name, says),
            }
        }
        Ok(Self(handle))
    }

    /// In the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// What has to be done now and then, until dropped.
    pub async fn maintain(&self) {
        loop {
            tokio::time::sleep(TIDY).await;
            self.0.run_upkeep();
        }
    }
}
