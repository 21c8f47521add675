//! The protocol's HTTP headers (Streamable HTTP).

use http::{HeaderName, HeaderValue, header::AsHeaderName};

use super::Head;
use crate::era::Era;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The header with the ID of a session.
pub(in crate::http) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Stands for a value that is not text, or for one of several: these must not count as absent, and
/// equal no valid value.
const INVALID: &str = "\u{fffd}";

impl Head {
    /// The declared protocol version.
    pub(in crate::http) fn version(&self) -> Option<&str> {
        self.valid(&VERSION)
    }

    /// Whether this is a GET or DELETE request of the modern era, which has POST only (Streamable
    /// HTTP: Earlier Streamable HTTP Revisions).
    pub(in crate::http) fn is_modern(&self) -> bool {
        let version = self.version();
        version.is_some() && Era::from_versions(None, version) == Era::Modern
    }

    /// The ID of the session.
    pub(in crate::http) fn session(&self) -> Option<&str> {
        self.valid(&SESSION)
    }

    /// The ID of the last event that the client has received.
    pub(in crate::http) fn last_event(&self) -> Option<&str> {
        self.valid(&LAST_EVENT)
    }

    /// A header that mirrors a part of the body, by its name in lower case.
    pub(in crate::http) fn mirrored(&self, name: &str) -> Option<&str> {
        // Header names that are constants need not be parsed for each lookup.
        match name {
            "mcp-protocol-version" => self.version(),
            "mcp-method" => self.valid(&METHOD),
            "mcp-name" => self.valid(&NAME),
            other => self.valid(other),
        }
    }

    fn valid(&self, name: impl AsHeaderName) -> Option<&str> {
        match self.only(name) {
            Ok(value) => value.map(|value| HeaderValue::to_str(value).unwrap_or(INVALID)),
            Err(_) => Some(INVALID),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_value_is_neither_absent_nor_valid() {
        let twice = Head::of(&[(SESSION, "a"), (SESSION, "a")]);
        assert_eq!(twice.session(), Some(INVALID));
        assert_eq!(Head::of(&[(SESSION, "a")]).session(), Some("a"));
        assert_eq!(Head::of(&[]).session(), None);
    }

    #[test]
    fn mirrored_headers_are_found_by_any_name() {
        let head = Head::of(&[
            (METHOD, "tools/call"),
            (HeaderName::from_static("mcp-param-region"), "eu"),
        ]);
        assert_eq!(head.mirrored("mcp-method"), Some("tools/call"));
        assert_eq!(head.mirrored("mcp-param-region"), Some("eu"));
        assert_eq!(head.mirrored("mcp-name"), None);
        assert_eq!(head.mirrored("no name"), None);
    }

    #[test]
    fn only_a_modern_version_is_modern() {
        assert!(Head::of(&[(VERSION, "2026-07-28")]).is_modern());
        assert!(!Head::of(&[(VERSION, "2025-11-25")]).is_modern());
        assert!(!Head::of(&[]).is_modern());
    }
}
