//! The protocol's HTTP headers.

use http::{HeaderMap, HeaderName, header::AsHeaderName};

pub(in crate::http) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(in crate::http) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The value of a header. A value that is not text, or one of several, must not count as
/// absent, so it becomes a string that equals no valid value.
pub(in crate::http) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    const INVALID: &str = "\u{fffd}";

    // Fast path: the map knows if no header occurs twice.
    if headers.len() == headers.keys_len() {
        return Some(headers.get(name)?.to_str().unwrap_or(INVALID));
    }

    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().unwrap_or(INVALID);
    Some(if values.next().is_some() { INVALID } else { value })
}
