//! The service's configuration: one TOML file, then the environment
//! (`LARDER_SERVER__LISTEN`), then flags, each over the one before.

mod auth;
mod error;
mod limits;
mod load;
mod observe;
mod public_url;
mod redis;
mod server;
mod sessions;
mod show;
mod store;
mod tasks;
mod tools;
mod workflows;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    auth::{AuthConfig, AuthMode, IntrospectionConfig, IssuerConfig, TokenConfig},
    error::ConfigError,
    limits::LimitsConfig,
    observe::{LogConfig, LogFormat, MetricsConfig, TracesConfig},
    public_url::PublicUrl,
    redis::RedisConfig,
    server::{ServerConfig, TlsConfig},
    sessions::SessionsConfig,
    store::{MemoryConfig, ObjectsConfig, StoreConfig},
    tasks::TasksConfig,
    tools::ToolsConfig,
    workflows::Places,
};
use crate::{
    protocol::ProtocolVersion, redis::RedisSettings, store::ObjectPlace, telemetry,
    workflow::SequentialWorkflow,
};

/// Everything that can be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the server listens.
    pub server: ServerConfig,
    /// Who may call.
    pub auth: AuthConfig,
    /// Where resources lie.
    pub store: StoreConfig,
    /// Bounds of the memory store.
    pub memory: MemoryConfig,
    /// How to deal with Redis.
    pub redis: RedisConfig,
    /// Bounds of stores in files and S3.
    pub objects: ObjectsConfig,
    /// Legacy sessions and their streams.
    pub sessions: SessionsConfig,
    /// Calls that go on after their request.
    pub tasks: TasksConfig,
    /// Bounds on requests and answers.
    pub limits: LimitsConfig,
    /// The tools of the service.
    pub tools: ToolsConfig,
    /// What is logged.
    pub log: LogConfig,
    /// Where metrics are found.
    pub metrics: MetricsConfig,
    /// Where traces go.
    pub traces: TracesConfig,
    /// Prompts that run steps, one `[[workflows]]` each.
    pub workflows: Vec<SequentialWorkflow>,
}

impl Config {
    /// Checks what types alone do not say.
    ///
    /// # Errors
    /// Names the setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.server.check()?;
        self.store.check()?;
        self.memory.check()?;
        self.redis.check()?;
        self.sessions.check()?;
        self.tasks.check()?;
        self.limits.check()?;
        self.tools.check()?;
        self.log.check()?;
        self.traces.check()?;
        self.auth.check(self.public_url()?.as_ref())?;
        let nobody_is_asked = self.auth.mode == AuthMode::None && !self.server.insecure_no_auth;
        if !self.server.listen.ip().is_loopback() && nobody_is_asked {
            return Err(ConfigError::new(
                "server.listen",
                format!(
                    "{} can be reached from other machines, and nobody is asked who they are. Listen on 127.0.0.1, set auth.mode, or give --insecure-no-auth if something in front of this server keeps others out",
                    self.server.listen
                ),
            ));
        }
        Ok(())
    }

    /// How to reach Redis, where `store.url` says that resources lie there.
    pub fn redis(&self) -> Option<RedisSettings> {
        self.redis.at(&self.store.url)
    }

    /// Whether resources lie as objects: in files or in S3.
    pub fn has_objects(&self) -> bool {
        ObjectPlace::is_for(&self.store.url)
    }

    /// How to reach the Redis that sessions and tasks lie in.
    pub fn sessions_redis(&self) -> Option<RedisSettings> {
        self.redis.at(self.sessions.url.as_ref().unwrap_or(&self.store.url))
    }

    /// The URL under which clients call the endpoint.
    ///
    /// # Errors
    /// When it is none.
    pub fn public_url(&self) -> Result<Option<PublicUrl>, ConfigError> {
        self.server.public_url()
    }

    /// The newest protocol version to speak.
    pub fn max_version(&self) -> ProtocolVersion {
        self.server.max_version()
    }

    /// What is logged and traced.
    pub fn telemetry(&self) -> telemetry::Options {
        let LogConfig { level, format } = &self.log;
        let traces = self.traces.endpoint.clone().map(|endpoint| telemetry::Traces {
            endpoint,
            sample: self.traces.sample,
            service_name: self.traces.service_name.clone(),
        });
        telemetry::Options { level: level.clone(), json: *format == LogFormat::Json, traces }
    }

    /// The grace period.
    pub fn grace(&self) -> Duration {
        self.server.grace()
    }
}
