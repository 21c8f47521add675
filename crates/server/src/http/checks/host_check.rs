//! Checks Host and Origin before a request is read: a page in a browser must not reach a
//! server that only listens locally (2026-07-28, Streamable HTTP: Security & Endpoint).

use std::borrow::Cow;

use http::{HeaderValue, Uri, header, uri::Authority};
use larder_network::is_loopback_host;

use crate::http::{
    Endpoint,
    error::{HttpError, Reply},
    head::{Head, Repeated},
};

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
        let authority = Authority::try_from(host).ok();
        let name = authority.as_ref().and_then(split).map_or(host, |(name, _)| name);
        self.hosts.push(name.to_ascii_lowercase());
        self
    }

    /// Allows an origin, such as `https://inspector.example.com`.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Self {
        self.origins.push(origin.trim_end_matches('/').to_ascii_lowercase());
        self
    }

    fn allows_host(&self, name: &str) -> bool {
        is_loopback_host(name)
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        // Pages of any site can have the origin `null`, such as those in a sandbox.
        if origin.eq_ignore_ascii_case("null") {
            return false;
        }
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }

        // An origin without a scheme, such as `null`, is not a page of this server.
        let Ok(uri) = Uri::try_from(origin) else { return false };
        let is_page = matches!(uri.scheme_str(), Some("http" | "https"));
        let name = uri.authority().and_then(split).map(|(name, _)| name);
        is_page && name.is_some_and(|name| self.allows_host(name))
    }

    fn check_host(&self, head: &Head) -> Reply<()> {
        let uri = head.target();
        let header = head.only(&header::HOST);
        let header = header.map_err(|Repeated| HttpError::Duplicate("Host"))?;

        // Fast path: most requests name a host with at most a port.
        if uri.authority().is_none()
            && let Some(name) = header.and_then(|host| plain_name(host.as_bytes()))
            && self.allows_host(name)
        {
            return Ok(());
        }

        let header = header.map(|host| {
            let authority = Authority::try_from(host.as_bytes());
            authority.map_err(|_| HttpError::HostSyntax(short(&text(host))))
        });
        let header = header.transpose()?;

        // HTTP/2 sends `:authority` instead of the header, and proxies send the whole URL.
        let (host, other) = match (&header, uri.authority()) {
            (Some(header), target) => (header, target),
            (None, Some(target)) => (target, None),
            (None, None) => return Err(HttpError::NoHost),
        };

        let syntax = || HttpError::HostSyntax(short(host.as_str()));
        let (name, port) = split(host).ok_or_else(syntax)?;

        if let Some(other) = other {
            let port_or_default = |port: Option<u16>| port.or(default_port(uri));
            let is_same = split(other).is_some_and(|(other, other_port)| {
                other.eq_ignore_ascii_case(name)
                    && port_or_default(other_port) == port_or_default(port)
            });
            if !is_same {
                return Err(HttpError::HostDiffers);
            }
        }

        if self.allows_host(name) { Ok(()) } else { Err(HttpError::Host(short(host.as_str()))) }
    }

    fn check_origin(&self, head: &Head) -> Reply<()> {
        let origin = head.only(&header::ORIGIN);
        let origin = origin.map_err(|Repeated| HttpError::Duplicate("Origin"))?;
        let Some(origin) = origin else { return Ok(()) };

        let origin = text(origin);
        if self.allows_origin(&origin) { Ok(()) } else { Err(HttpError::Origin(short(&origin))) }
    }
}

/// Rejects requests for other hosts.
pub(in crate::http) fn host(endpoint: &Endpoint, head: &Head) -> Reply<()> {
    endpoint.options().hosts.check_host(head)
}

/// Rejects requests from pages of other origins.
pub(in crate::http) fn origin(endpoint: &Endpoint, head: &Head) -> Reply<()> {
    endpoint.options().hosts.check_origin(head)
}

/// Whether a request is for the host of that name, whatever the port: proxies may drop it.
pub(in crate::http) fn is_for(head: &Head, host: &str) -> bool {
    let header = head.first(&header::HOST);
    let header = header.and_then(|value| Authority::try_from(value.as_bytes()).ok());
    let authority = header.as_ref().or(head.target().authority());
    let name = authority.and_then(split).map(|(name, _)| name);
    name.is_some_and(|name| name.eq_ignore_ascii_case(host))
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    value.to_str().map_or_else(|_| String::from_utf8_lossy(value.as_bytes()), Cow::Borrowed)
}

/// The beginning of what a client sent, for an error.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The host and the port. None with credentials or with something else in place of the
/// port, which a `uri::Authority` may have.
fn split(authority: &Authority) -> Option<(&str, Option<u16>)> {
    let host = authority.host();
    let rest = authority.as_str().strip_prefix(host)?;
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        Some("") => None,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
        None | Some(_) => return None,
    };

    (!host.is_empty()).then_some((host, port))
}

/// The name in a `Host` header of a name or an IPv4 address and at most a port. None for others,
/// which need to be parsed.
fn plain_name(host: &[u8]) -> Option<&str> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let end = host.iter().position(|byte| !is_name(byte)).unwrap_or(host.len());
    let (name, port) = host.split_at(end);

    let is_port = match port {
        [] => true,
        [b':', digits @ ..] => {
            (1..=4).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };

    str::from_utf8(name).ok().filter(|name| is_port && !name.is_empty())
}

fn default_port(uri: &Uri) -> Option<u16> {
    match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::{StatusCode, header};

    use super::{AllowedHosts, Head, HttpError};

    fn check(uri: &str, hosts: &[&str]) -> Result<(), HttpError> {
        let headers: Vec<_> = hosts.iter().map(|host| (header::HOST, *host)).collect();
        let allowed = AllowedHosts::default().host("mcp.example.com:443");
        allowed.check_host(&Head::of(&headers).to(uri))
    }

    #[test]
    fn only_names_of_this_server_are_allowed() {
        for host in [
            "localhost",
            "localhost:",
            "localhost:8000",
            "127.0.0.1:1",
            "[::1]:8000",
            "[::1]",
            "MCP.example.com",
        ] {
            assert_eq!(check("/mcp", &[host]), Ok(()), "{host}");
        }

        for host in
            ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "10.0.0.1", "::1"]
        {
            assert!(check("/mcp", &[host]).is_err(), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_and_port_is_a_bad_request() {
        for host in [
            "",
            "127.0.0.1]evil.com",
            "[::1]evil.com",
            "[::1]evil.com:80",
            "[::1",
            "localhost:evil",
            "localhost:8000:1",
            "localhost:+80",
            "localhost:65536",
            "localhost:x@evil.example.com",
            "evil.example.com@localhost",
            "localhost/evil",
            "local host",
        ] {
            let refused = check("/mcp", &[host]).unwrap_err();
            assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{host} {refused}");
        }

        assert_eq!(check("/mcp", &[]), Err(HttpError::NoHost));
        assert_eq!(check("/mcp", &["localhost", "localhost"]), Err(HttpError::Duplicate("Host")));
    }

    #[test]
    fn the_request_target_and_the_header_name_one_host() {
        for (uri, hosts) in [
            ("http://localhost/mcp", &["localhost"][..]),
            ("http://LOCALHOST:80/mcp", &["localhost"]),
            ("https://mcp.example.com/mcp", &["mcp.example.com:443"]),
            ("https://mcp.example.com/mcp", &[]),
        ] {
            assert_eq!(check(uri, hosts), Ok(()), "{uri} {hosts:?}");
        }

        for (uri, host) in [
            ("http://evil.example.com/mcp", "localhost"),
            ("http://localhost:8001/mcp", "localhost:8000"),
            ("http://localhost/mcp", "evil.example.com"),
        ] {
            assert_eq!(check(uri, &[host]), Err(HttpError::HostDiffers), "{uri} {host}");
        }

        assert!(matches!(check("http://evil.example.com/mcp", &[]), Err(HttpError::Host(_))));
    }

    #[test]
    fn only_pages_of_this_server_are_allowed() {
        let hosts = AllowedHosts::default().origin("https://inspector.example.com/").origin("null");

        for origin in ["http://localhost:6274", "http://127.0.0.1", "https://inspector.example.com"]
        {
            assert!(hosts.allows_origin(origin), "{origin}");
        }

        for origin in [
            "null",
            "",
            "http://evil.example.com",
            "file://localhost",
            "localhost",
            "http://localhost:x@evil.example.com",
            "http://evil.example.com@localhost",
            "http://localhost:evil",
            "http://localhost\\@evil.example.com",
        ] {
            assert!(!hosts.allows_origin(origin), "{origin}");
        }
    }
}
