//! [`Endpoint`]: the URL of a server, as people write it.

use std::net::IpAddr;

use reqwest::Url;

use super::DEFAULT_URL;
use crate::config::mask_url;

/// The path of Larder's endpoint, for a URL without one.
const PATH: &str = "/mcp";

/// The URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Endpoint(Url);

impl Endpoint {
    /// Reads a URL. Scheme, host and path may be left out: `8000`, `localhost:8000` and
    /// `http://localhost:8000/` are read as people mean them.
    ///
    /// # Errors
    /// The text is no URL of a server.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, String> {
        let mut endpoint = Self::of_any_server(text)?;
        if endpoint.0.path() == "/" {
            endpoint.0.set_path(PATH);
        }
        Ok(endpoint)
    }

    /// Reads the URL of any server: one with a scheme is complete, and has its own path.
    ///
    /// # Errors
    /// The text is no URL of a server.
    pub(in crate::cli) fn of_any_server(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let whole = match text {
            "" => DEFAULT_URL.to_owned(),
            text if text.contains("://") => text.to_owned(),
            text => with_scheme(text),
        };

        let mut url = Url::parse(&whole)
            .map_err(|_| format!("{text:?} is not the URL of a server. Example: {DEFAULT_URL}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{text}: the URL of a server begins with http:// or https://."));
        }

        if url.path() == "/" && !text.contains("://") {
            url.set_path(PATH);
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    pub(in crate::cli) fn url(&self) -> &Url {
        &self.0
    }

    /// The URL without credentials and secret parameters, for messages.
    pub(in crate::cli) fn shown(&self) -> String {
        mask_url(self.0.as_str())
    }

    /// The URL with another scheme, for messages.
    pub(in crate::cli) fn with_scheme(&self, scheme: &str) -> String {
        let shown = self.shown();
        let rest = shown.split_once("://").map_or("", |(_, rest)| rest);
        format!("{scheme}://{rest}")
    }

    /// Whether the server is on this machine.
    pub(in crate::cli) fn is_local(&self) -> bool {
        larder_network::is_loopback(&self.0)
    }
}

/// The text with the scheme that it most likely means: servers on this machine and at plain
/// addresses rarely have a certificate.
fn with_scheme(text: &str) -> String {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    if is_port(authority.strip_prefix(':').unwrap_or(authority)) {
        return format!("http://127.0.0.1:{}", text.strip_prefix(':').unwrap_or(text));
    }

    let host = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => host,
        _ => authority,
    };
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let scheme = if host == "localhost" || is_address { "http" } else { "https" };
    format!("{scheme}://{text}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_url_is_read_as_people_mean_it() {
        for (text, url) in [
            ("", "http://127.0.0.1:8000/mcp"),
            ("8001", "http://127.0.0.1:8001/mcp"),
            (":8001", "http://127.0.0.1:8001/mcp"),
            (":8001/x", "http://127.0.0.1:8001/x"),
            ("8001/x", "http://127.0.0.1:8001/x"),
            (":8001/x?k=1", "http://127.0.0.1:8001/x?k=1"),
            ("127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
            ("127.0.0.1:8000/", "http://127.0.0.1:8000/mcp"),
            ("localhost:8000/mcp", "http://localhost:8000/mcp"),
            ("localhost", "http://localhost/mcp"),
            ("[::1]:8000", "http://[::1]:8000/mcp"),
            ("10.0.0.7", "http://10.0.0.7/mcp"),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/mcp"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
            ("mcp.example.com", "https://mcp.example.com/mcp"),
            ("example.com:8443/api?key=1", "https://example.com:8443/api?key=1"),
            ("https://example.com/sse#x", "https://example.com/sse"),
            (" http://a.example/mcp\n", "http://a.example/mcp"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().url().as_str(), url, "{text:?}");
        }

        for (text, url) in [
            ("https://a.example/", "https://a.example/"),
            ("https://a.example", "https://a.example/"),
            ("a.example", "https://a.example/mcp"),
            ("8001", "http://127.0.0.1:8001/mcp"),
            ("https://a.example/api", "https://a.example/api"),
        ] {
            assert_eq!(Endpoint::of_any_server(text).unwrap().url().as_str(), url, "{text:?}");
        }

        for wrong in ["ftp://a.example", "file:///tmp/x", "http://", "a b", "http://a b/", "://"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for url in
            ["http://me:hush@127.0.0.1:1", "http://hush@127.0.0.1:1", "127.0.0.1:1/mcp?key=hush"]
        {
            let endpoint = Endpoint::parse(url).unwrap();
            let shown = [endpoint.shown(), endpoint.with_scheme("https")];
            assert!(shown.iter().all(|shown| !shown.contains("hush")), "{shown:?}");
            assert!(shown[1].starts_with("https://") && shown[1].contains("127.0.0.1:1/mcp"));
        }
    }
}
