//! The configuration: a TOML file, environment variables (`LARDER_SERVER__LISTEN`), and
//! flags. Each overrides the one before.

mod apps;
mod auth;
#[cfg(feature = "query")]
mod code;
mod compute;
mod console;
mod content;
#[cfg(feature = "cli")]
mod environment;
mod error;
mod exchange;
mod expand;
mod limits;
#[cfg(feature = "cli")]
mod load;
mod login;
mod observe;
mod public_url;
#[cfg(feature = "query")]
mod query;
mod redis;
mod secret;
mod server;
mod sessions;
#[cfg(feature = "cli")]
mod show;
#[cfg(feature = "cli")]
mod sources;
mod store;
mod store_url;
#[cfg(feature = "cli")]
mod suggestions;
mod tasks;
mod tools;
#[cfg(feature = "cli")]
mod underlay;
mod units;
mod upstream_checks;
mod upstreams;
#[cfg(feature = "cli")]
mod variables;
#[cfg(feature = "cli")]
mod workflows;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "query")]
pub use self::code::CodeConfig;
#[cfg(feature = "query")]
pub use self::query::QueryConfig;
pub(crate) use self::store_url::StoreUrl;
#[cfg(feature = "cli")]
pub use self::workflows::WorkflowLocations;
pub use self::{
    apps::AppsConfig,
    auth::{AuthConfig, AuthMode, IntrospectionConfig, IssuerConfig, TokenConfig},
    compute::ComputeConfig,
    console::{ConsoleConfig, ConsoleOidcConfig},
    content::ContentConfig,
    error::ConfigError,
    exchange::UpstreamExchangeConfig,
    limits::LimitsConfig,
    login::{LoginAllowConfig, LoginConfig, LoginProvider},
    observe::{LogConfig, LogFormat, MetricsConfig, TracesConfig},
    public_url::PublicUrl,
    redis::RedisConfig,
    server::{ServerConfig, TlsConfig},
    sessions::SessionsConfig,
    store::{MemoryConfig, ObjectsConfig, StoreConfig},
    tasks::TasksConfig,
    tools::{ToolListing, ToolsConfig},
    units::{Size, Span},
    upstreams::{RefsConfig, UpstreamAuthConfig, UpstreamAuthKind, UpstreamConfig},
};
#[cfg(feature = "cli")]
pub(crate) use self::{show::mask_url, sources::Sources, tools::user_caches};
#[cfg(feature = "cli")]
use crate::telemetry;
use larder_protocol::ProtocolVersion;
use larder_server::workflow::SequentialWorkflow;
use larder_store::redis::RedisSettings;

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address, names and TLS of the server.
    pub server: ServerConfig,
    /// Authentication and scopes.
    pub auth: AuthConfig,

    /// Storage and time to live of resources.
    pub store: StoreConfig,
    /// Limits of the memory store.
    pub memory: MemoryConfig,
    /// Redis, for resources, sessions and tasks.
    pub redis: RedisConfig,
    /// Limits of the stores in files and buckets.
    pub objects: ObjectsConfig,
    /// Sessions of clients before 2026-07-28, and their streams.
    pub sessions: SessionsConfig,
    /// Calls that continue as tasks. Tasks are stored where sessions are (`sessions.url`).
    pub tasks: TasksConfig,

    /// Limits on requests and responses, for a server with 1 GiB of memory and two cores. Each
    /// instance counts on its own. A caller that reaches its limit gets a 429; when all callers
    /// together reach one, a 503. Both name the setting.
    pub limits: LimitsConfig,
    /// Work for the CPU, such as searches and compression. Callers take turns.
    pub compute: ComputeConfig,

    /// Stored content over HTTP.
    pub content: ContentConfig,
    /// The built-in tools and the size of results.
    pub tools: ToolsConfig,
    /// The tool query_resource: SQL and jq over stored content. Each query runs in a process of its
    /// own, without environment, files and network.
    #[cfg(feature = "query")]
    pub query: QueryConfig,
    /// The tool run_code: JavaScript over tools and stored content. Each run has a process of its
    /// own, confined as those of queries are. See docs/code.md.
    #[cfg(feature = "query")]
    pub code: CodeConfig,
    /// Pages that hosts show beside a conversation.
    pub apps: AppsConfig,
    /// Pages on this server, at which people see and manage what they have stored.
    pub console: ConsoleConfig,

    /// Logs.
    pub log: LogConfig,
    /// Metrics for Prometheus.
    pub metrics: MetricsConfig,
    /// Traces.
    pub traces: TracesConfig,

    /// Other MCP servers behind this one. See docs/gateway.md.
    pub upstreams: Vec<UpstreamConfig>,
    /// Prompts that run their steps on the server. See docs/workflows.md.
    pub workflows: Vec<SequentialWorkflow>,
}

impl Config {
    /// The variables of the environment that have secrets of Larder as a client.
    #[cfg(feature = "cli")]
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let login = self.auth.login.iter().map(|login| &login.client_secret_env);
        let issuers = self.auth.issuers.iter().filter_map(|issuer| issuer.introspection.as_ref());
        let introspection = issuers.map(|introspection| &introspection.client_secret_env);
        let console = self.console.oidc.iter().map(|oidc| &oidc.client_secret_env);
        login.chain(introspection).chain(console).filter_map(Option::as_deref)
    }

    /// Checks what the types do not guarantee.
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
        self.compute.check()?;
        self.content.check(self.store.max_ttl)?;
        self.tools.check()?;
        #[cfg(feature = "query")]
        self.query.check()?;
        #[cfg(feature = "query")]
        self.code.check(self.query.enabled)?;
        self.apps.check()?;
        self.console.check(&self.server, &self.auth)?;
        self.log.check()?;
        self.traces.check()?;

        if !self.upstreams.is_empty() {
            self.tools.check_in_front()?;
        }
        UpstreamConfig::check_all(
            &self.upstreams,
            std::time::Duration::from_secs(self.store.max_ttl),
            self.auth.mode,
        )?;

        self.check_logins()?;
        self.auth.check(self.public_url()?.as_ref())?;
        if self.auth.mode == AuthMode::Login {
            self.check_state_key("auth.login")?;
        }

        let no_auth = self.auth.mode == AuthMode::None && !self.server.insecure_no_auth;
        if !self.server.listen.ip().is_loopback() && no_auth {
            return Err(ConfigError::new(
                "server.listen",
                format!(
                    "{} is reachable from other machines and there is no authentication. Listen on 127.0.0.1, set auth.mode, or use --insecure-no-auth if something in front of the server restricts access",
                    self.server.listen
                ),
            ));
        }

        Ok(())
    }

    /// Whether callers log in at upstreams.
    pub fn has_logins(&self) -> bool {
        self.upstreams.iter().any(|upstream| upstream.auth.is_some())
    }

    fn check_logins(&self) -> Result<(), ConfigError> {
        if !self.has_logins() {
            return Ok(());
        }

        if self.base_url()?.is_none() {
            let problem = "upstreams.auth needs the URL to which browsers return after a login";
            return Err(ConfigError::new("server.public_url", problem));
        }

        self.check_state_key("upstreams.auth")
    }

    /// Whether tokens of callers are exchanged for those of upstreams.
    pub(crate) fn has_exchanges(&self) -> bool {
        self.upstreams.iter().any(|upstream| upstream.exchange.is_some())
    }

    /// Checks that there is a key to seal the tokens in a shared store with.
    fn check_state_key(&self, needed_by: &str) -> Result<(), ConfigError> {
        let is_shared = self.store.place()? != StoreUrl::Memory;
        if is_shared && self.server.state_key_file.is_none() {
            let problem = format!(
                "{needed_by} needs a key to seal the tokens that are kept in store.url: a file with at least 32 random bytes, the same on all instances"
            );
            return Err(ConfigError::new("server.state_key_file", problem));
        }

        Ok(())
    }

    /// The URL of the endpoint as browsers reach it: `server.public_url`, or that of a loopback
    /// address.
    ///
    /// # Errors
    /// `server.public_url` is invalid.
    pub fn base_url(&self) -> Result<Option<String>, ConfigError> {
        if let Some(url) = self.public_url()? {
            let is_safe = url.is_safe();
            return Ok(is_safe.then(|| url.as_str().to_owned()));
        }

        let listen = self.server.listen;
        let server = &self.server;
        let scheme = if server.tls.is_some() { "https" } else { "http" };
        let is_known = listen.ip().is_loopback() && listen.port() != 0;
        Ok(is_known.then(|| format!("{scheme}://{listen}{}", server.path.trim_end_matches('/'))))
    }

    /// Whether links to content can be offered over HTTP: their URL must be known.
    pub fn has_content_links(&self) -> bool {
        let is_known =
            self.server.public_url.is_some() || !self.server.listen.ip().is_unspecified();
        self.content.enabled && is_known
    }

    /// The Redis of sessions and tasks: that of `sessions.url`, or by default that of `store.url`.
    /// `None` if they are in memory.
    ///
    /// # Errors
    /// A URL is invalid.
    pub(crate) fn sessions_redis(&self) -> Result<Option<RedisSettings>, ConfigError> {
        let place = match self.sessions.place()? {
            Some(place) => place,
            None => self.store.place()?,
        };

        Ok(match place {
            StoreUrl::Redis(url) => Some(self.redis.settings(url)),
            StoreUrl::Memory | StoreUrl::Objects(_) => None,
        })
    }

    /// The URL that clients use for the endpoint.
    ///
    /// # Errors
    /// The URL is invalid.
    pub fn public_url(&self) -> Result<Option<PublicUrl>, ConfigError> {
        self.server.public_url()
    }

    /// The newest protocol revision that the server offers.
    pub fn max_version(&self) -> ProtocolVersion {
        self.server.max_version()
    }

    /// The options for logs and traces.
    #[cfg(feature = "cli")]
    pub fn telemetry(&self) -> telemetry::Options {
        let traces = self.traces.endpoint.clone().map(|endpoint| telemetry::Traces {
            endpoint,
            sample: self.traces.sample,
            service_name: self.traces.service_name.clone(),
        });
        telemetry::Options {
            level: self.log.filter(),
            json: self.log.format == LogFormat::Json,
            traces,
        }
    }

    /// The time between a stop and the end of new connections.
    pub fn shutdown_delay(&self) -> Duration {
        self.server.shutdown_delay()
    }

    /// The time that running requests have to finish when the server stops.
    pub fn grace(&self) -> Duration {
        self.server.grace()
    }
}
