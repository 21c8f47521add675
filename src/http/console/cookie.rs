//! The cookie of a session. It is for the console's paths only, so the MCP endpoint never gets it.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

#[cfg(feature = "login")]
use super::pending::PendingKey;
use super::{Console, origin::PageOrigin, sessions::Key};
use crate::http::browser;

/// Browsers accept this name only over HTTPS.
const SECURE: &str = "__Secure-larder";
/// The name on plain HTTP, where only pages of this machine can log in.
const PLAIN: &str = "larder-console";
/// The same for a login that is at the authorization server.
#[cfg(feature = "login")]
const SECURE_LOGIN: &str = "__Secure-larder-login";
#[cfg(feature = "login")]
const PLAIN_LOGIN: &str = "larder-console-login";

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

    /// The key in the cookie of a login that is at the authorization server.
    #[cfg(feature = "login")]
    pub(super) fn pending(headers: &HeaderMap) -> Option<PendingKey> {
        let mut cookies = [SECURE_LOGIN, PLAIN_LOGIN]
            .into_iter()
            .filter_map(|name| browser::cookie(headers, name));
        cookies.find_map(|value| PendingKey::parse(&value))
    }

    /// Gives a browser the key of its login. It comes back when the authorization server's page
    /// sends the browser to the callback, and in no other request.
    #[cfg(feature = "login")]
    pub(super) fn set_pending(
        &self,
        headers: &mut HeaderMap,
        page: &PageOrigin,
        key: &str,
        lifetime: Duration,
    ) {
        let name = if page.is_https { SECURE_LOGIN } else { PLAIN_LOGIN };
        set(headers, name, key, &self.callback_path(), lifetime.as_secs(), "Lax");
    }

    /// Makes the browser forget its login.
    #[cfg(feature = "login")]
    pub(super) fn remove_pending(&self, headers: &mut HeaderMap) {
        for name in [SECURE_LOGIN, PLAIN_LOGIN] {
            set(headers, name, "", &self.callback_path(), 0, "Lax");
        }
    }

    fn set(&self, headers: &mut HeaderMap, name: &str, value: &str, age: u64) {
        set(headers, name, value, &self.path, age, "Strict");
    }
}

fn set(headers: &mut HeaderMap, name: &str, value: &str, path: &str, age: u64, same_site: &str) {
    let secure = if name.starts_with("__Secure-") { "; Secure" } else { "" };
    let cookie = format!(
        "{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite={same_site}{secure}"
    );
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}
