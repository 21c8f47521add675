//! The cookie of a session. It is for the console's paths only, so the MCP endpoint never gets it.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use super::{Console, origin::PageOrigin, sessions::Key};
use crate::http::browser;

/// Browsers accept this name only over HTTPS.
const SECURE: &str = "__Secure-larder";
/// The name on plain HTTP, where only pages of this machine can log in.
const PLAIN: &str = "larder-console";

impl Console {
    /// The key in the cookie of a request.
    pub(super) fn key(headers: &HeaderMap) -> Option<Key> {
        let mut cookies =
            [SECURE, PLAIN].into_iter().filter_map(|name| browser::cookie(headers, name));
        cookies.find_map(|value| Key::parse(&value))
    }

    /// Gives the browser of a page the key of a session.
    pub(super) fn set_key(
        &self,
        headers: &mut HeaderMap,
        page: &PageOrigin,
        key: &Key,
        lifetime: Duration,
    ) {
        let name = if page.is_https { SECURE } else { PLAIN };
        self.set(headers, name, key.as_str(), lifetime.as_secs());
    }

    /// Makes the browser forget its key.
    pub(super) fn remove_key(&self, headers: &mut HeaderMap) {
        self.set(headers, SECURE, "", 0);
        self.set(headers, PLAIN, "", 0);
    }

    fn set(&self, headers: &mut HeaderMap, name: &str, value: &str, age: u64) {
        let secure = if name == SECURE { "; Secure" } else { "" };
        let path = &self.path;
        let cookie = format!(
            "{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        );
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}
