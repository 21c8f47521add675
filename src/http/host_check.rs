//! Checks Host and Origin before a request is read: a page in a browser must not reach a
//! server that only listens locally (2026-07-28, Streamable HTTP: Security & Endpoint).

use std::{borrow::Cow, net::IpAddr};

use axum::extract::Request;
use http::{HeaderMap, HeaderValue, Uri, header};

use super::{Endpoint, error::HttpError};

/// The host names of the server and the origins whose pages may call it. Loopback is always
/// allowed.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Default for AllowedHosts {
    /// Loopback only.
    fn default() -> Self {
        Self { hosts: Vec::new(), origins: Vec::new() }
    }
}

impl AllowedHosts {
    /// Allows a host name or address. A port is ignored.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.hosts.push(without_port(host).to_ascii_lowercase());
        self
    }

    /// Allows an origin, such as `https://inspector.example.com`.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Self {
        self.origins.push(origin.trim_end_matches('/').to_ascii_lowercase());
        self
    }

    fn allows_host(&self, host: &str) -> bool {
        let host = without_port(host);
        is_loopback(host) || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        // An origin without a scheme, such as `null`, is not a page of this server.
        let Some((scheme, host)) = origin.split_once("://") else { return false };
        let is_page = ["http", "https"].iter().any(|allowed| allowed.eq_ignore_ascii_case(scheme));
        is_page && self.allows_host(host)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpError> {
        let host = match headers.get(header::HOST) {
            Some(host) => text(host),
            // HTTP/2 sends it as `:authority`.
            None => uri.authority().map_or("", |authority| authority.as_str()).into(),
        };
        if !self.allows_host(&host) {
            return Err(HttpError::Host(host.chars().take(80).collect()));
        }
        Ok(())
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        for origin in headers.get_all(header::ORIGIN) {
            let origin = text(origin);
            if !self.allows_origin(&origin) {
                return Err(HttpError::Origin(origin.chars().take(80).collect()));
            }
        }
        Ok(())
    }
}

/// Rejects requests for other hosts.
pub(super) fn host(endpoint: &Endpoint, request: &Request) -> Result<(), HttpError> {
    endpoint.options().hosts.check_host(request.uri(), request.headers())
}

/// Rejects requests from pages of other origins.
pub(super) fn origin(endpoint: &Endpoint, headers: &HeaderMap) -> Result<(), HttpError> {
    endpoint.options().hosts.check_origin(headers)
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    value.to_str().map_or_else(|_| String::from_utf8_lossy(value.as_bytes()), Cow::Borrowed)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // A colon within brackets belongs to the address.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::AllowedHosts;

    #[test]
    fn only_names_of_this_server_are_allowed() {
        let hosts = AllowedHosts::default().host("mcp.example.com:443");
        for host in ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "MCP.example.com"]
        {
            assert!(hosts.allows_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "10.0.0.1",
            "127.0.0.1]evil.com",
            "[::1]evil.com",
            "[::1]evil.com:80",
            "[::1",
            "[evil.com]:80",
        ] {
            assert!(!hosts.allows_host(host), "{host}");
        }
    }

    #[test]
    fn only_pages_of_this_server_are_allowed() {
        let hosts = AllowedHosts::default().origin("https://inspector.example.com/");
        for origin in ["http://localhost:6274", "http://127.0.0.1", "https://inspector.example.com"]
        {
            assert!(hosts.allows_origin(origin), "{origin}");
        }
        for origin in ["null", "", "http://evil.example.com", "file://localhost", "localhost"] {
            assert!(!hosts.allows_origin(origin), "{origin}");
        }
    }
}
