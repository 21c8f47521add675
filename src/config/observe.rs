//! `[log]`, `[metrics]` and `[traces]`: what an operator sees of the server.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[log]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// What is written to standard error: a level (`error`, `warn`, `info`,
    /// `debug`, `trace`), or several by target (`warn,larder=debug,audit=info`).
    /// `RUST_LOG`, where it is set, stands over this.
    pub level: String,
    /// In which form.
    pub format: LogFormat,
}

/// The form of a line of log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "warn".into(), format: LogFormat::default() }
    }
}

impl LogConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        tracing_subscriber::EnvFilter::try_new(&self.level)
            .map(drop)
            .map_err(|problem| ConfigError::new("log.level", problem))
    }
}

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// Address and port where Prometheus finds `/metrics`; nowhere by default.
    /// Nobody is asked who they are there.
    pub listen: Option<SocketAddr>,
}

/// `[traces]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracesConfig {
    /// Where traces go, by OTLP over HTTP, such as
    /// `http://localhost:4318/v1/traces`; nowhere by default.
    pub endpoint: Option<String>,
    /// The part of the calls that is traced when the caller does not say, from
    /// 0 to 1.
    pub sample: f64,
    /// The name of this service in them.
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
