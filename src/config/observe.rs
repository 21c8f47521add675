//! `[log]`, `[metrics]` and `[traces]`.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[log]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Levels that are written to standard error: one level (error, warn, info, debug, trace) or
    /// levels by target (`"warn,larder=debug,audit=info"`). RUST_LOG overrides it.
    pub level: String,
    /// `"text"`, or `"json"` for one JSON object a line.
    pub format: LogFormat,
    /// Log one of so many calls (`1`: each), and all that end with an error, on the target `access`:
    /// caller, method, tool, URI, outcome, bytes and milliseconds. `0`: none.
    pub access: u32,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "warn".into(), format: LogFormat::default(), access: 0 }
    }
}

impl LogConfig {
    /// The filter of log lines, with those of the access log if there are some.
    pub(crate) fn filter(&self) -> String {
        if self.access == 0 {
            return self.level.clone();
        }
        format!("{},access=info", self.level)
    }
}

impl LogConfig {
    #[cfg_attr(not(feature = "cli"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        #[cfg(feature = "cli")]
        tracing_subscriber::EnvFilter::try_new(&self.level)
            .map_err(|problem| ConfigError::new("log.level", problem))?;
        Ok(())
    }
}

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// Address and port that serve /metrics for Prometheus, without authentication: restrict access
    /// to it. No metrics are served when not set.
    pub listen: Option<SocketAddr>,
}

/// `[traces]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracesConfig {
    /// OTLP over HTTP endpoint that traces are sent to. No traces are sent when not set.
    pub endpoint: Option<String>,
    /// Fraction of calls that are traced when the caller does not decide, 0 to 1.
    pub sample: f64,
    /// Service name in the traces.
    pub service_name: String,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self { endpoint: None, sample: 1.0, service_name: "larder".into() }
    }
}

impl TracesConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(0.0..=1.0).contains(&self.sample) {
            return Err(ConfigError::new("traces.sample", "it must be between 0 and 1"));
        }

        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.endpoint.as_ref().is_some_and(|url| !is_url(url)) {
            return Err(ConfigError::new("traces.endpoint", "it must be an http or https URL"));
        }

        Ok(())
    }
}
