//! `[server]`: where the server listens, and under which names it is called.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, PublicUrl};
use crate::protocol::ProtocolVersion;

/// `[server]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Speak HTTPS, with this certificate.
    pub tls: Option<TlsConfig>,
}

/// `[server.tls]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The file with the certificate and those that lead to its root, in PEM.
    pub cert: PathBuf,
    /// The file with its private key, in PEM.
    pub key: PathBuf,
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
            tls: None,
        }
    }
}

impl ServerConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let path = &self.path;
        if !path.starts_with('/') || path.len() < 2 || path.contains(['{', '}', '*', '?', '#', ' '])
        {
            let problem = format!("{path:?} is not a path such as \"/mcp\"");
            return Err(ConfigError::new("server.path", problem));
        }
        if let Some(taken) = crate::http::PROBE_PATHS.iter().find(|open| *open == path) {
            return Err(ConfigError::new("server.path", format!("{taken} is for probes")));
        }
        if ProtocolVersion::parse(&self.max_version).is_none() {
            let known = ProtocolVersion::names_up_to(ProtocolVersion::LATEST).join(", ");
            let problem = format!("{:?} is none of {known}", self.max_version);
            return Err(ConfigError::new("server.max_version", problem));
        }
        if let Some(tls) = &self.tls {
            for (setting, file) in [("server.tls.cert", &tls.cert), ("server.tls.key", &tls.key)] {
                if file.as_os_str().is_empty() {
                    return Err(ConfigError::new(setting, "it is missing: HTTPS needs both"));
                }
            }
        }
        Ok(())
    }

    /// The URL under which clients call the endpoint.
    pub(super) fn public_url(&self) -> Result<Option<PublicUrl>, ConfigError> {
        let url = self.public_url.as_deref().map(PublicUrl::parse).transpose();
        url.map_err(|problem| ConfigError::new("server.public_url", problem))
    }

    pub(super) fn max_version(&self) -> ProtocolVersion {
        ProtocolVersion::parse(&self.max_version).unwrap_or(ProtocolVersion::LATEST)
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}
