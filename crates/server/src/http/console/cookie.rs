//! The cookies of the console. Over HTTPS their names begin with `__Host-`: browsers take such a
//! cookie from the host itself only, and over HTTPS only, so neither a page of a sibling domain nor
//! anyone on the network can give a browser another person's session.

use std::time::Duration;

use http::HeaderMap;

use super::{Console, pending::PendingKey, session_key::SessionKey};
use crate::http::{
    head::Head,
    pages::{Cookie, SameSite},
};

/// The cookies of a console. No other name is read or set.
#[derive(Debug)]
pub(super) struct Cookies {
    session: Cookie,
    /// The cookie of a login that is at the authorization server.
    login: Cookie,
}

impl Cookies {
    /// The cookies of a console at that path. Over HTTPS the prefix needs the path `/` (RFC
    /// 6265bis, section 4.1.3.2), so the names have the path: two consoles on one host each have
    /// their own.
    pub(super) fn new(path: &str, is_https: bool) -> Self {
        let cookie = |name: &str, plain_path: String, same_site| Cookie {
            name: if is_https {
                format!("__Host-larder{name}{}", path.replace('/', "."))
            } else {
                format!("larder-console{name}")
            },
            path: if is_https { "/".to_owned() } else { plain_path },
            same_site,
            is_secure: is_https,
        };

        Self {
            session: cookie("", path.to_owned(), SameSite::Strict),
            login: cookie("-login", format!("{path}/callback"), SameSite::Lax),
        }
    }

    /// Whether browsers reach the console over HTTPS.
    pub(super) fn are_secure(&self) -> bool {
        self.session.is_secure
    }
}

impl Console {
    /// The key in the cookie of a request.
    pub(super) fn key(&self, head: &Head) -> Option<SessionKey> {
        SessionKey::parse(&self.cookies.session.read(head)?)
    }

    /// Gives a browser the key of a session.
    pub(super) fn set_key(&self, headers: &mut HeaderMap, key: &SessionKey, lifetime: Duration) {
        self.cookies.session.set(headers, &key.text(), lifetime);
    }

    /// Makes the browser forget its key.
    pub(super) fn remove_key(&self, headers: &mut HeaderMap) {
        self.cookies.session.remove(headers);
    }

    /// The key in the cookie of a login that is at the authorization server.
    pub(super) fn pending(&self, head: &Head) -> Option<PendingKey> {
        PendingKey::parse(&self.cookies.login.read(head)?)
    }

    /// Gives a browser the key of its login. It comes back when the authorization server's page
    /// sends the browser to the callback, and in no request that another page makes.
    pub(super) fn set_pending(&self, headers: &mut HeaderMap, key: &str, lifetime: Duration) {
        self.cookies.login.set(headers, key, lifetime);
    }

    /// Makes the browser forget its login.
    pub(super) fn remove_pending(&self, headers: &mut HeaderMap) {
        self.cookies.login.remove(headers);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::header;

    use super::*;

    fn set(cookie: &Cookie) -> String {
        let mut headers = HeaderMap::new();
        cookie.set(&mut headers, "k", Duration::from_secs(9));
        headers[header::SET_COOKIE].to_str().unwrap().to_owned()
    }

    #[test]
    fn over_https_a_cookie_is_of_the_host_alone() {
        let cookies = Cookies::new("/a/console", true);
        let expected =
            "__Host-larder.a.console=k; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=9";
        assert_eq!(set(&cookies.session), expected);

        let read = |sent: &str| cookies.session.read(&Head::of(&[(header::COOKIE, sent)]));
        assert_eq!(read("x=y; __Host-larder.a.console=k").as_deref(), Some("k"));
        for other in ["larder-console=k", "__Secure-larder=k", "__Host-larder.console=k"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn on_plain_http_a_cookie_is_of_its_path_alone() {
        let cookies = Cookies::new("/console", false);
        let expected = "larder-console=k; HttpOnly; SameSite=Strict; Path=/console; Max-Age=9";
        assert_eq!(set(&cookies.session), expected);
    }

    #[test]
    fn the_cookie_of_a_login_comes_back_from_another_site() {
        let expected = [
            "__Host-larder-login.console=k; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=9",
            "larder-console-login=k; HttpOnly; SameSite=Lax; Path=/console/callback; Max-Age=9",
        ];
        for (is_https, expected) in [true, false].into_iter().zip(expected) {
            assert_eq!(set(&Cookies::new("/console", is_https).login), expected);
        }
    }
}
