//! Metrics for Prometheus. Code records them with the macros of the `metrics` crate, under
//! the names of [`METRICS`]. The macros do nothing until [`Metrics::install`].
//!
//! Names follow OpenTelemetry where it has one (HTTP, MCP), in Prometheus form. Others
//! begin with `larder_` and contain the unit; counters end with `_total`.

use std::time::Duration;

use larder_runtime::panics::PanicSite;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// A gauge for each part that the server depends on.
    DependencyGauge,
    /// A gauge of what instances may share: see [`Inventory`](super::Inventory).
    SharedGauge,
    /// A counter whose series have a label.
    LabelledCounter,
    /// A gauge for each upstream.
    UpstreamGauge,
    /// A gauge of the processes of queries.
    QueryGauge,
    /// A gauge of this process.
    ProcessGauge,
    /// A distribution of values.
    Histogram,
}

/// Every metric: type, name, description.
pub const METRICS: [(Kind, &str, &str); 35] = [
    (
        Kind::Histogram,
        "mcp_server_operation_duration_seconds",
        "Duration of MCP requests until their result, by method, tool and outcome.",
    ),
    (
        Kind::Histogram,
        "http_server_request_duration_seconds",
        "Duration of HTTP requests until the response head, by method and status.",
    ),
    (Kind::Gauge, "http_server_active_requests", "HTTP requests without a response head yet."),
    (Kind::Gauge, "larder_connections", "Open connections."),
    (
        Kind::Counter,
        "larder_connections_refused_total",
        "Connections rejected over the limit (limits.connections).",
    ),
    (Kind::Gauge, "larder_streams", "Open event streams."),
    (Kind::Gauge, "larder_calls", "Running MCP requests."),
    (
        Kind::DependencyGauge,
        "larder_dependency_up",
        "Whether what the server depends on is available: store, sessions, keys of the issuers, required upstreams.",
    ),
    (
        Kind::SharedGauge,
        "larder_sessions",
        "Live sessions of clients before 2026-07-28, by session store.",
    ),
    (Kind::Counter, "larder_sessions_started_total", "Sessions started by clients."),
    (Kind::Counter, "larder_sessions_ended_total", "Sessions ended by clients."),
    (Kind::SharedGauge, "larder_resources", "Resources of all owners, by store."),
    (
        Kind::SharedGauge,
        "larder_resource_bytes",
        "What all resources count towards quotas, in bytes, by store.",
    ),
    (
        Kind::SharedGauge,
        "larder_disk_free_bytes",
        "Free bytes on the disk with the content, by store; only where it is a disk.",
    ),
    (
        Kind::Counter,
        "larder_resources_written_total",
        "Resources created or updated with new content.",
    ),
    (Kind::Counter, "larder_resources_deleted_total", "Resources deleted before they expired."),
    (
        Kind::Counter,
        "larder_resources_refused_total",
        "Writes rejected or failed because of quota, content or store.",
    ),
    (Kind::Counter, "larder_stored_bytes_total", "Bytes of content stored."),
    (
        Kind::Counter,
        "larder_context_kept_out_bytes_total",
        "Bytes that calls stored as resources, less the bytes of their requests and results: content that no model had to read.",
    ),
    (
        Kind::UpstreamGauge,
        "larder_upstream_up",
        "Whether an upstream can be used: 0 after a failure, until it runs again.",
    ),
    (
        Kind::UpstreamGauge,
        "larder_upstream_degraded",
        "Whether a list of a running upstream is cut or cannot be read.",
    ),
    (Kind::UpstreamGauge, "larder_upstream_processes", "Running processes of an upstream."),
    (
        Kind::UpstreamGauge,
        "larder_upstream_message_bytes",
        "Bytes of messages and lists of all upstreams that are held in memory.",
    ),
    (
        Kind::QueryGauge,
        "larder_query_confinement",
        "Whether a barrier holds around the processes of queries, by barrier.",
    ),
    (
        Kind::LabelledCounter,
        "larder_logins_total",
        "What happened at the server's own login, by event.",
    ),
    (
        Kind::LabelledCounter,
        "larder_upstream_failures_total",
        "Processes of an upstream that did not start or ended by themselves.",
    ),
    (
        Kind::Histogram,
        "larder_upstream_request_duration_seconds",
        "Duration of tool calls at an upstream, by outcome.",
    ),
    (
        Kind::LabelledCounter,
        "larder_upstream_kept_out_bytes_total",
        "The share of an upstream in larder_context_kept_out_bytes_total.",
    ),
    (
        Kind::LabelledCounter,
        "larder_panics_total",
        "Panics that were caught, by the part of the server.",
    ),
    (
        Kind::LabelledCounter,
        "larder_limits_reached_total",
        "Requests that a limit has refused, by its setting.",
    ),
    (Kind::ProcessGauge, "larder_build_info", "1, with the version of the binary."),
    (Kind::ProcessGauge, "process_resident_memory_bytes", "Resident memory of the process."),
    (
        Kind::LabelledCounter,
        "process_cpu_seconds_total",
        "CPU time of the process, in whole seconds.",
    ),
    (Kind::ProcessGauge, "process_open_fds", "Open file descriptors of the process."),
    (
        Kind::ProcessGauge,
        "process_start_time_seconds",
        "When the process has started, in seconds since 1970.",
    ),
];

/// Bucket bounds in seconds, from a cache hit to a long job.
const DURATION_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// How often histograms are maintained between scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The recorded metrics.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder for the process.
    ///
    /// # Errors
    /// Another recorder is installed.
    pub fn install() -> Result<Self, String> {
        let suffix = Matcher::Suffix("_seconds".into());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(suffix, &DURATION_BUCKETS);
        let recorder = builder.map_err(|e| e.to_string())?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|e| e.to_string())?;

        for (kind, name, description) in METRICS {
            match kind {
                // Counters start at 0, so that alerts see a value.
                Kind::Counter => {
                    metrics::describe_counter!(name, description);
                    metrics::counter!(name).absolute(0);
                }
                Kind::Gauge => {
                    metrics::describe_gauge!(name, description);
                    metrics::gauge!(name).set(0.0);
                }
                // The series of a labelled metric appear with the first measurement.
                Kind::LabelledCounter => metrics::describe_counter!(name, description),
                Kind::DependencyGauge
                | Kind::SharedGauge
                | Kind::UpstreamGauge
                | Kind::QueryGauge
                | Kind::ProcessGauge => {
                    metrics::describe_gauge!(name, description);
                }
                Kind::Histogram => metrics::describe_histogram!(name, description),
            }
        }

        for site in PanicSite::ALL {
            site.describe();
        }

        Ok(Self(handle))
    }

    /// Renders the metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Maintains the histograms until dropped.
    pub async fn maintain(&self) {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.0.run_upkeep();
        }
    }
}
