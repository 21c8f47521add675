//! The URL under which links are reachable.

use std::{fmt, sync::Arc};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that a path segment may contain unencoded (RFC 3986: unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An origin and the path in front of the server's own paths, such as
/// `https://mcp.example.com` or `https://example.com/larder`. No slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Arc<str>);

impl BaseUrl {
    /// From the URL of the MCP endpoint and its path on this server. A proxy may add a prefix
    /// to all paths. Where it maps the endpoint to another path, the links are at the root.
    pub fn of_endpoint(url: &str, path: &str) -> Self {
        let url = url.trim_end_matches('/');
        let authority = url.find("://").map_or(0, |at| at + 3);
        let root = url[authority..].find('/').map_or(url.len(), |slash| authority + slash);

        let base = match url[root..].strip_suffix(path.trim_end_matches('/')) {
            Some(prefix) => &url[..root + prefix.len()],
            None => &url[..root],
        };

        Self(base.trim_end_matches('/').into())
    }

    /// The URL as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The host without the port, as a `Host` header has it.
    pub(crate) fn host(&self) -> &str {
        let rest = self.0.split_once("://").map_or(&*self.0, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        // The colons of an IPv6 address are in brackets.
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text as one segment of a URL's path.
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_has_the_prefix_that_a_proxy_adds() {
        for (url, path, base, host) in [
            ("https://a.example/mcp", "/mcp", "https://a.example", "a.example"),
            ("https://a.example/x/mcp", "/mcp", "https://a.example/x", "a.example"),
            ("http://127.0.0.1:8000/mcp", "/mcp", "http://127.0.0.1:8000", "127.0.0.1"),
            ("http://[::1]:8000/mcp", "/mcp", "http://[::1]:8000", "[::1]"),
            ("http://[::1]", "/", "http://[::1]", "[::1]"),
            ("https://a.example/tools", "/mcp", "https://a.example", "a.example"),
            ("https://a.example", "/mcp", "https://a.example", "a.example"),
            ("https://mcp", "/mcp", "https://mcp", "mcp"),
        ] {
            let found = BaseUrl::of_endpoint(url, path);
            assert_eq!((found.as_str(), found.host()), (base, host), "{url} {path}");
        }
    }

    #[test]
    fn a_segment_has_no_delimiters() {
        assert_eq!(encode_segment("a/b?c#d %\"\r\n"), "a%2Fb%3Fc%23d%20%25%22%0D%0A");
        assert_eq!(encode_segment("Größe-1_2.~"), "Gr%C3%B6%C3%9Fe-1_2.~");
    }
}
