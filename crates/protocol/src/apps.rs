//! The extension MCP Apps (2026-01-26): pages that hosts show beside a conversation.

use serde_json::Value;

use super::ClientFacts;

/// The name of the extension.
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The media type of a page.
pub const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The member of `_meta` that belongs to the extension.
pub const APPS_META: &str = "ui";
/// The scheme of the URIs of pages.
pub const APPS_SCHEME: &str = "ui://";

impl ClientFacts {
    /// Whether the client shows pages of MCP Apps: it declares their media type.
    pub fn shows_apps(&self) -> bool {
        let extensions = self.capabilities.extensions.as_ref();
        let types = extensions
            .and_then(|extensions| extensions.get(APPS_EXTENSION))
            .and_then(|settings| settings.get("mimeTypes"))
            .and_then(Value::as_array);
        types.is_some_and(|types| types.iter().any(|name| name == APP_MIME_TYPE))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_shows_apps_if_it_declares_their_media_type() {
        for (extensions, shows) in [
            (json!({ APPS_EXTENSION: { "mimeTypes": [APP_MIME_TYPE] } }), true),
            (json!({ APPS_EXTENSION: { "mimeTypes": ["text/html", APP_MIME_TYPE] } }), true),
            (json!({ APPS_EXTENSION: { "mimeTypes": ["text/html"] } }), false),
            (json!({ APPS_EXTENSION: {} }), false),
            (json!({}), false),
        ] {
            let capabilities =
                serde_json::from_value(json!({ "extensions": extensions.clone() })).unwrap();
            let client = ClientFacts { capabilities, ..ClientFacts::default() };
            assert_eq!(client.shows_apps(), shows, "{extensions}");
        }
    }
}
