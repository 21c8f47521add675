//! The service's configuration: one TOML file, then the environment
//! (`LARDER_SERVER__LISTEN`), then flags, each over the one before.

mod auth;
mod public_url;
mod tools;
mod workflows;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

pub use self::{
    auth::{AuthConfig, AuthMode, IntrospectionConfig, IssuerConfig, TokenConfig},
    public_url::PublicUrl,
    tools::ToolsConfig,
    workflows::Places,
};
use crate::{
    auth::PrincipalLimits, protocol::ProtocolVersion, redis::RedisSettings,
    workflow::SequentialWorkflow,
};

/// Everything that can be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Legacy sessions and their streams.
    pub sessions: SessionsConfig,
    /// Bounds on requests and answers.
    pub limits: LimitsConfig,
    /// The tools of the service.
    pub tools: ToolsConfig,
    /// Prompts that run steps, one `[[workflows]]` each.
    pub workflows: Vec<SequentialWorkflow>,
}

/// Longer than anybody waits for an answer.
const MAX_REDIS_TIMEOUT: Duration = Duration::from_secs(60);

/// `[server]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The path of the endpoint.
    pub path: String,
    /// The URL under which clients call the endpoint, without a slash at its
    /// end: what tokens must be for, and a name that may be called.
    pub public_url: Option<String>,
    /// More names under which the server may be called.
    pub allowed_hosts: Vec<String>,
    /// Origins other than this machine's whose pages may call the server.
    pub allowed_origins: Vec<String>,
    /// The newest protocol version to speak.
    pub max_version: String,
    /// Answer by one JSON message always, never by a stream: for clients and
    /// proxies that do not get on with streams. Progress and log messages are
    /// not sent then.
    pub json_response: bool,
    /// Listen on an address that others can reach although nobody is asked
    /// who they are.
    pub insecure_no_auth: bool,
    /// A file with a secret of at least 32 bytes that all replicas share, so
    /// that any of them goes on with a call that was answered with a question.
    pub state_key_file: Option<PathBuf>,
    /// How many seconds running requests may take to end when the server stops.
    pub grace: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8000)),
            path: "/mcp".into(),
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_version: ProtocolVersion::LATEST.as_str().into(),
            json_response: false,
            insecure_no_auth: false,
            state_key_file: None,
            grace: 10,
        }
    }
}

/// `[store]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `memory:`, or Redis as in [`RedisSettings::url`](crate::redis::RedisSettings::url).
    pub url: String,
    /// Seconds that a resource lives when nobody says otherwise.
    pub default_ttl: u64,
    /// The most seconds that may be asked for.
    pub max_ttl: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let day = 24 * 60 * 60;
        Self { url: "memory:".into(), default_ttl: day, max_ttl: 30 * day }
    }
}

/// `[memory]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Bytes of content in all, counted as they came, before compression.
    pub bytes: u64,
    /// Bytes of content of one owner.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        let limits = crate::store::MemoryLimits::default();
        Self {
            bytes: limits.bytes,
            bytes_per_owner: limits.bytes_per_owner,
            resources_per_owner: limits.resources_per_owner,
        }
    }
}

/// `[redis]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// How many seconds connecting and the answer to one command may take.
    pub timeout: f64,
    /// What all keys and channels begin with.
    pub prefix: String,
    /// Whether migrations that are missing are run at the start.
    pub migrate: bool,
    /// Bytes of content of one owner.
    pub bytes_per_owner: u64,
    /// Resources of one owner.
    pub resources_per_owner: u64,
}

impl Default for RedisConfig {
    fn default() -> Self {
        let settings = RedisSettings::new("");
        let limits = crate::store::RedisLimits::default();
        Self {
            timeout: settings.timeout.as_secs_f64(),
            prefix: settings.prefix,
            migrate: false,
            bytes_per_owner: limits.bytes_per_owner,
            resources_per_owner: limits.resources_per_owner,
        }
    }
}

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsConfig {
    /// `memory:`, or Redis; where nothing is said, Redis if resources lie there.
    pub url: Option<String>,
    /// Seconds that a session lives without a request or a connection.
    pub idle: u64,
    /// Seconds that a finished stream can still be resumed.
    pub replay: u64,
    /// Sessions of one caller.
    pub per_principal: usize,
    /// Whether resources created in a session go when the client ends it;
    /// otherwise they live until they expire.
    pub delete_resources: bool,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        let limits = crate::session::SessionLimits::default();
        Self {
            url: None,
            idle: limits.idle.as_secs(),
            replay: limits.replay.as_secs(),
            per_principal: limits.sessions_per_principal,
            delete_resources: false,
        }
    }
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// The most bytes that a request's body may have.
    pub body_bytes: usize,
    /// The most bytes that `resources/read` gives at once.
    pub read_bytes: u64,
    /// Requests of one caller in a window; 0 is any number.
    pub requests_per_window: u32,
    /// The window, in seconds.
    pub window: u64,
    /// Calls of one caller that run at the same time; 0 is any number.
    pub concurrent_calls: usize,
    /// Streams that one caller holds open to hear of changes; 0 is any number.
    pub open_streams: usize,
}

impl LimitsConfig {
    /// Bounds for one caller.
    pub fn principals(&self) -> PrincipalLimits {
        PrincipalLimits {
            requests: self.requests_per_window,
            window: Duration::from_secs(self.window),
            calls: self.concurrent_calls,
            streams: self.open_streams,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let principals = PrincipalLimits::default();
        Self {
            body_bytes: 32 << 20,
            read_bytes: 16 << 20,
            requests_per_window: principals.requests,
            window: principals.window.as_secs(),
            concurrent_calls: principals.calls,
            open_streams: principals.streams,
        }
    }
}

/// What is wrong with the configuration, naming the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// That setting is wrong in that way.
    pub fn new(setting: &str, problem: impl std::fmt::Display) -> Self {
        Self(format!("{setting}: {problem}"))
    }
}

impl Config {
    /// Reads the file, if there is one, then the environment; lets the caller
    /// have the last word; and checks what comes of it.
    ///
    /// # Errors
    /// Names the setting, and the file where it stands.
    pub fn load(
        file: Option<&Path>,
        last_word: impl FnOnce(&mut Self),
    ) -> Result<Self, ConfigError> {
        let mut config = Self::from_sources(file, None)?;
        last_word(&mut config);
        config.check()?;
        Ok(config)
    }

    fn from_sources(
        file: Option<&Path>,
        environment: Option<std::collections::HashMap<String, String>>,
    ) -> Result<Self, ConfigError> {
        let mut builder = ::config::Config::builder();
        if let Some(path) = file {
            let format = ::config::FileFormat::Toml;
            builder = builder.add_source(::config::File::from(path).format(format));
        }
        let environment = ::config::Environment::with_prefix("LARDER")
            .prefix_separator("_")
            .separator("__")
            .try_parsing(true)
            .list_separator(",")
            .with_list_parse_key("server.allowed_hosts")
            .with_list_parse_key("server.allowed_origins")
            .with_list_parse_key("auth.required_scopes")
            .ignore_empty(true)
            .source(environment);
        let read = builder.add_source(environment).build();
        read.and_then(::config::Config::try_deserialize).map_err(|error| {
            let in_file = file.and_then(first_fault);
            let problem = in_file.unwrap_or_else(|| error.to_string());
            ConfigError(format!("The configuration cannot be used: {problem}"))
        })
    }

    /// Checks what types alone do not say.
    ///
    /// # Errors
    /// Names the setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        let path = &self.server.path;
        if !path.starts_with('/') || path.len() < 2 || path.contains(['{', '}', '*', '?', '#', ' '])
        {
            let problem = format!("{path:?} is not a path such as \"/mcp\"");
            return Err(ConfigError::new("server.path", problem));
        }
        if ProtocolVersion::parse(&self.server.max_version).is_none() {
            let known = ProtocolVersion::names_up_to(ProtocolVersion::LATEST).join(", ");
            let problem = format!("{:?} is none of {known}", self.server.max_version);
            return Err(ConfigError::new("server.max_version", problem));
        }
        let positive = [
            ("store.default_ttl", self.store.default_ttl),
            ("memory.bytes", self.memory.bytes),
            ("sessions.idle", self.sessions.idle),
            ("limits.body_bytes", self.limits.body_bytes as u64),
            ("limits.read_bytes", self.limits.read_bytes),
            ("limits.window", self.limits.window),
        ];
        for (setting, value) in positive {
            if value == 0 {
                return Err(ConfigError::new(setting, "it must be more than 0"));
            }
        }
        if let Some(url) = &self.sessions.url
            && !url.starts_with("memory:")
            && !RedisSettings::is_for(url)
        {
            // It may hold a password.
            let problem = "it is neither \"memory:\" nor \"redis://…\"";
            return Err(ConfigError::new("sessions.url", problem));
        }
        if self.store.default_ttl > self.store.max_ttl {
            return Err(ConfigError::new("store.default_ttl", "it is longer than store.max_ttl"));
        }
        let timeout = Duration::try_from_secs_f64(self.redis.timeout);
        if !timeout.is_ok_and(|timeout| !timeout.is_zero() && timeout <= MAX_REDIS_TIMEOUT) {
            let problem = format!(
                "it must be more than 0 and at most {} seconds",
                MAX_REDIS_TIMEOUT.as_secs()
            );
            return Err(ConfigError::new("redis.timeout", problem));
        }
        self.tools.check()?;
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
        self.redis_at(&self.store.url)
    }

    /// The same for sessions.
    pub fn sessions_redis(&self) -> Option<RedisSettings> {
        self.redis_at(self.sessions.url.as_ref().unwrap_or(&self.store.url))
    }

    fn redis_at(&self, url: &str) -> Option<RedisSettings> {
        RedisSettings::is_for(url).then(|| RedisSettings {
            timeout: Duration::from_secs_f64(self.redis.timeout),
            prefix: self.redis.prefix.clone(),
            ..RedisSettings::new(url)
        })
    }

    /// The URL under which clients call the endpoint.
    ///
    /// # Errors
    /// When it is none.
    pub fn public_url(&self) -> Result<Option<PublicUrl>, ConfigError> {
        let url = self.server.public_url.as_deref().map(PublicUrl::parse).transpose();
        url.map_err(|problem| ConfigError::new("server.public_url", problem))
    }

    /// The newest protocol version to speak.
    pub fn max_version(&self) -> ProtocolVersion {
        ProtocolVersion::parse(&self.server.max_version).unwrap_or(ProtocolVersion::LATEST)
    }

    /// The grace period.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.server.grace)
    }
}

/// What is wrong with a file by itself, with the place where it stands, which
/// sources that were put together do not know.
fn first_fault(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let error = toml::from_str::<Config>(&text).err()?;
    let line = text[..error.span()?.start].matches('\n').count() + 1;
    Some(format!("{}:{line}: {}", file.display(), error.message()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{collections::HashMap, io::Write};

    use super::*;

    fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut toml = tempfile::NamedTempFile::new().unwrap();
        toml.write_all(file.as_bytes()).unwrap();
        let environment: HashMap<_, _> =
            environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let config = Config::from_sources(Some(toml.path()), Some(environment))?;
        config.check().map(|()| config)
    }

    #[test]
    fn the_environment_stands_over_the_file_and_the_file_over_the_defaults() {
        let file = "[server]\nlisten = \"127.0.0.1:1\"\npath = \"/a\"";
        let environment = [
            ("LARDER_SERVER__LISTEN", "127.0.0.1:2"),
            ("LARDER_SERVER__ALLOWED_HOSTS", "a.example,b.example"),
            ("LARDER_TOOLS__WRITE", "false"),
        ];
        let config = load(file, &environment).unwrap();
        assert_eq!(config.server.listen.port(), 2);
        assert_eq!(config.server.path, "/a");
        assert_eq!(config.server.allowed_hosts, ["a.example", "b.example"]);
        assert!(!config.tools.write);
        assert_eq!(config.store, StoreConfig::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (file, named) in [
            ("[server]\nlisten = \"here\"", "server.listen"),
            ("[server]\nlissten = \"127.0.0.1:1\"", "lissten"),
            ("[sever]\n", "sever"),
            ("[server]\npath = \"mcp\"", "server.path"),
            ("[server]\nmax_version = \"1\"", "server.max_version"),
            ("[server]\nlisten = \"0.0.0.0:8000\"", "server.listen"),
            ("[store]\ndefault_ttl = 0", "store.default_ttl"),
            ("[store]\ndefault_ttl = -1", "store.default_ttl"),
            ("[sessions]\nurl = \"http://x\"", "sessions.url"),
            ("[redis]\ntimeout = 0", "redis.timeout"),
            ("[redis]\ntimeout = -1", "redis.timeout"),
            ("[redis]\ntimeout = 1e99", "redis.timeout"),
            ("[tools]\noutput_bytes = 1", "tools.output_bytes"),
            ("[tools.clients]\nsmall = 1", "tools.clients.small"),
            ("[tools.spill]\nlist_resources = \"sometimes\"", "sometimes"),
            ("[server", "TOML"),
        ] {
            let error = load(file, &[]).unwrap_err().to_string();
            assert!(error.contains(named), "{file:?}: {error}");
        }
        let error = load("", &[("LARDER_SERVER__LISTTEN", "x")]).unwrap_err().to_string();
        assert!(error.contains("listten"), "{error}");
    }

    #[test]
    fn another_address_than_loopback_needs_a_word() {
        let file = "[server]\nlisten = \"0.0.0.0:8000\"\ninsecure_no_auth = true";
        assert!(load(file, &[]).is_ok());
        assert!(load("[server]\nlisten = \"[::1]:8000\"", &[]).is_ok());
    }
}
