//! The URL that clients use for the endpoint.

/// A checked `server.public_url` in canonical form. It is compared with the audiences of
/// tokens byte by byte.
///
/// ```
/// use larder::config::PublicUrl;
///
/// let url = PublicUrl::parse("https://mcp.example.com/mcp").unwrap(); assert_eq!((url.authority(),
/// url.path()), ("mcp.example.com", "/mcp")); for bad in ["https://mcp.example.com/mcp/",
/// "https://MCP.example.com/mcp", "https://mcp.example.com:443/mcp",
/// "https://mcp.example.com/mcp?a", "mcp.example.com/mcp"] {
///     assert!(PublicUrl::parse(bad).is_err(), "{bad}");
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// Describes the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let canonical = canonical_url(text)?;
        if text.contains(['?', '#']) {
            return Err("it must not have a query or a fragment".into());
        }
        if text.ends_with('/') {
            return Err("it must not end with a slash".into());
        }
        if canonical.trim_end_matches('/') != text {
            return Err(format!("write it as {}", canonical.trim_end_matches('/')));
        }
        if text.contains(['{', '}', '*', '"', '\\']) {
            return Err("it contains characters that are not allowed in a URL".into());
        }

        Ok(Self(text.to_owned()))
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The scheme, the host, and the port if there is one.
    pub(crate) fn origin(&self) -> String {
        let scheme = self.0.split("://").next().unwrap_or_default();
        format!("{scheme}://{}", self.authority())
    }

    /// The host, and the port if there is one.
    pub fn authority(&self) -> &str {
        self.split().0
    }

    /// The path, empty for the root.
    pub fn path(&self) -> &str {
        self.split().1
    }

    /// Whether tokens may be sent to it: `https`, or loopback.
    pub(super) fn is_safe(&self) -> bool {
        is_safe(&self.0)
    }

    fn split(&self) -> (&str, &str) {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/').map_or((rest, ""), |index| rest.split_at(index))
    }
}

fn canonical_url(text: &str) -> Result<String, String> {
    larder_oauth::canonical_url(text)
}

fn is_safe(url: &str) -> bool {
    larder_oauth::check_url(url).is_ok()
}
