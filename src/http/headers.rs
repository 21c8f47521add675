//! Request headers of the protocol.

use http::{HeaderMap, HeaderName, header::AsHeaderName};

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A header's value, when it is there. What is no text, or was given more than
/// once, must not count as left out: it is given as something that is equal to
/// nothing.
pub(super) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    const NONSENSE: &str = "\u{fffd}";
    // Mostly nothing was given twice, and the map knows that at once.
    if headers.len() == headers.keys_len() {
        return Some(headers.get(name)?.to_str().unwrap_or(NONSENSE));
    }
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().unwrap_or(NONSENSE);
    Some(if values.next().is_some() { NONSENSE } else { value })
}
