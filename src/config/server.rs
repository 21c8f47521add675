//! `[server]`: address, names and TLS of the server.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use http::uri::Authority;
use larder_protocol::ProtocolVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, PublicUrl};

/// Paths that have another use on the server, with all below them.
const RESERVED: [&str; 3] = [larder_server::http::RESOURCES_PATH, "/content", "/.well-known"];

/// `[server]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Path of the MCP endpoint.
    pub path: String,
    /// The URL that clients use for the endpoint, without a trailing slash. It is the audience that
    /// access tokens must have, and its host name is accepted in the Host header. Set it behind a
    /// proxy.
    pub public_url: Option<String>,

    /// Additional host names that the Host header may have. Requests with any other Host are
    /// refused with 403, which protects a local server from DNS rebinding. Loopback names, the
    /// address of `server.listen` and the host of `public_url` are always accepted; ports are
    /// ignored. There are no wildcards.
    pub allowed_hosts: Vec<String>,
    /// Additional origins whose web pages may call the server. Origins of an accepted host name are
    /// always allowed, and `null` never is. There are no wildcards.
    pub allowed_origins: Vec<String>,
    /// Proxies in front of the server, as addresses or networks such as `"10.0.0.0/8"`. A request
    /// from one of them counts and is logged under the rightmost address of X-Forwarded-For that is
    /// not a trusted proxy's. Otherwise all clients behind a proxy have its address.
    pub trusted_proxies: Vec<String>,

    /// The newest protocol revision that the server offers.
    pub max_version: String,
    /// Always respond with one JSON message and never with an event stream, for clients and proxies
    /// that cannot handle streams. Progress and log messages are then not sent, and a call cannot
    /// ask the client within a session.
    pub json_response: bool,

    /// Allow a non-loopback `server.listen` without authentication. Use it only where something in
    /// front of the server restricts access.
    pub insecure_no_auth: bool,
    /// File with a secret of at least 32 bytes, the same on all instances. It signs requestState,
    /// so that any instance can continue a call that asked the client for input. Without it
    /// instances on one Redis share keys there, which rotate every day; without Redis each process
    /// uses a random key.
    pub state_key_file: Option<PathBuf>,

    /// Seconds between a stop signal and the end of new connections. Meanwhile /readyz answers 503
    /// and responses close their connections, so that a proxy that checks it turns to other
    /// instances. 0 is enough for a proxy that tries another instance when a connection is refused.
    pub shutdown_delay: u64,
    /// Seconds that running requests have to finish when the server stops. Calls that still run
    /// then end with an error that says to send the request again.
    pub grace: u64,

    /// HTTPS with HTTP/2. The files are read again when they change.
    pub tls: Option<TlsConfig>,
}

/// `[server.tls]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificate chain in PEM, the server's certificate first.
    pub cert: PathBuf,
    /// Private key in PEM.
    pub key: PathBuf,
}

/// Whether a path is another one, or below it.
pub(super) fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8000)),
            path: "/mcp".into(),
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            max_version: ProtocolVersion::LATEST.as_str().into(),
            json_response: false,
            insecure_no_auth: false,
            state_key_file: None,
            shutdown_delay: 0,
            grace: 10,
            tls: None,
        }
    }
}

impl ServerConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let path = &self.path;
        let is_plain = path.bytes().all(|b| b.is_ascii_graphic() && !b"{}*?#".contains(&b));
        // The router reserves a colon at the start of a segment.
        if !path.starts_with('/') || path.len() < 2 || !is_plain || path.contains("/:") {
            let problem = format!("{path:?} is not a path such as \"/mcp\"");
            return Err(ConfigError::new("server.path", problem));
        }

        if let Some(taken) = larder_server::http::PROBE_PATHS.iter().find(|probe| *probe == path) {
            return Err(ConfigError::new("server.path", format!("{taken} is reserved for probes")));
        }

        if let Some(taken) = RESERVED.iter().find(|taken| is_within(path, taken)) {
            let problem = format!("{path} is reserved: {taken} has another use on this server");
            return Err(ConfigError::new("server.path", problem));
        }

        for host in &self.allowed_hosts {
            check_host(host).map_err(|problem| invalid("server.allowed_hosts", host, problem))?;
        }
        for origin in &self.allowed_origins {
            check_origin(origin)
                .map_err(|problem| invalid("server.allowed_origins", origin, problem))?;
        }

        self.trusted_proxies()?;
        if ProtocolVersion::parse(&self.max_version).is_none() {
            let known = ProtocolVersion::names_up_to(ProtocolVersion::LATEST).join(", ");
            let problem = format!("{:?} is not one of {known}", self.max_version);
            return Err(ConfigError::new("server.max_version", problem));
        }

        if let Some(tls) = &self.tls {
            for (setting, file) in [("server.tls.cert", &tls.cert), ("server.tls.key", &tls.key)] {
                if file.as_os_str().is_empty() {
                    return Err(ConfigError::new(
                        setting,
                        "it is missing; HTTPS needs both server.tls.cert and server.tls.key",
                    ));
                }
            }
        }

        Ok(())
    }

    /// The URL that clients use for the endpoint.
    pub(super) fn public_url(&self) -> Result<Option<PublicUrl>, ConfigError> {
        let url = self.public_url.as_deref().map(PublicUrl::parse).transpose();
        url.map_err(|problem| ConfigError::new("server.public_url", problem))
    }

    /// The proxies whose `X-Forwarded-For` is believed.
    pub(crate) fn trusted_proxies(
        &self,
    ) -> Result<larder_server::http::TrustedProxies, ConfigError> {
        let proxies = larder_server::http::TrustedProxies::parse(&self.trusted_proxies);
        proxies.map_err(|problem| ConfigError::new("server.trusted_proxies", problem))
    }

    pub(super) fn max_version(&self) -> ProtocolVersion {
        ProtocolVersion::parse(&self.max_version).unwrap_or(ProtocolVersion::LATEST)
    }

    pub(super) fn shutdown_delay(&self) -> Duration {
        Duration::from_secs(self.shutdown_delay)
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

fn invalid(setting: &str, value: &str, problem: &str) -> ConfigError {
    ConfigError::new(setting, format!("{value:?} {problem}"))
}

/// Checks a host name or address, with or without a port.
fn check_host(host: &str) -> Result<(), &'static str> {
    if host.contains('*') {
        return Err(
            "is a wildcard, which allows no host: name each host that clients call, such as mcp.example.com",
        );
    }
    if host.contains("://") || host.contains('/') {
        return Err("is a URL: write only its host, such as mcp.example.com");
    }
    match Authority::try_from(host) {
        Ok(authority) if !host.contains('@') && !authority.host().is_empty() => Ok(()),
        _ => Err("is no host: write a name or an address, such as mcp.example.com or [::1]"),
    }
}

/// Checks an origin as browsers send it (RFC 6454, section 6.1).
fn check_origin(origin: &str) -> Result<(), &'static str> {
    if origin.contains('*') {
        return Err(
            "is a wildcard, which allows no origin: name each origin, such as https://inspector.example.com",
        );
    }
    if origin.eq_ignore_ascii_case("null") {
        return Err(
            "is the origin of pages of any site: name the origin of the page, such as https://inspector.example.com",
        );
    }

    const FORM: &str =
        "is no origin: write scheme, host and port, such as https://inspector.example.com";
    let (scheme, rest) = origin.split_once("://").ok_or(FORM)?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let host = rest.strip_suffix('/').unwrap_or(rest);
    if is_scheme && check_host(host).is_ok() { Ok(()) } else { Err(FORM) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins_that_would_allow_nothing_are_refused() {
        for good in ["mcp.example.com", "mcp.example.com:8443", "10.0.0.1", "[::1]", "true", "7"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for (bad, said) in [
            ("*", "wildcard"),
            ("*.example.com", "wildcard"),
            ("https://mcp.example.com", "URL"),
            ("mcp.example.com/mcp", "URL"),
            ("", "no host"),
            ("a b", "no host"),
            ("user@mcp.example.com", "no host"),
        ] {
            let problem = check_host(bad).expect_err(bad);
            assert!(
                problem.contains(said) && problem.contains("mcp.example.com"),
                "{bad}: {problem}"
            );
        }

        for good in ["https://a.example", "http://a.example:3000/", "vscode-webview://abc"] {
            assert_eq!(check_origin(good), Ok(()), "{good}");
        }
        for (bad, said) in [
            ("*", "wildcard"),
            ("https://*.example.com", "wildcard"),
            ("null", "any site"),
            ("NULL", "any site"),
            ("inspector.example.com", "no origin"),
            ("https://a.example/page", "no origin"),
            ("", "no origin"),
        ] {
            let problem = check_origin(bad).expect_err(bad);
            assert!(problem.contains(said) && problem.contains("https://"), "{bad}: {problem}");
        }
    }
}
