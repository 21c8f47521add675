//! Cookies of this server.

use std::time::Duration;

pub(in crate::http) use cookie::SameSite;
use cookie::time;
use http::{HeaderMap, HeaderValue, header};

use crate::http::head::Head;

/// A cookie that no script can read.
#[derive(Debug, Clone)]
pub(in crate::http) struct Cookie {
    pub(in crate::http) name: String,
    /// The path below which the browser sends it.
    pub(in crate::http) path: String,
    /// Whether the browser sends it only from pages of this site (`Strict`), or also when it goes
    /// on to a page of this server, as after a login elsewhere (`Lax`).
    pub(in crate::http) same_site: SameSite,
    pub(in crate::http) is_secure: bool,
}

impl Cookie {
    /// A cookie for the pages below a path of the server at that URL. It comes back after a
    /// redirect from another server, and in no request that another page makes.
    pub(in crate::http) fn below(base_url: &str, path: &str, name: &str) -> Self {
        let base = base_url.splitn(4, '/').nth(3).unwrap_or_default();
        let base = format!("/{base}").trim_end_matches('/').to_owned();
        Self {
            name: name.to_owned(),
            path: format!("{base}/{path}"),
            same_site: SameSite::Lax,
            is_secure: base_url.starts_with("https:"),
        }
    }

    pub(in crate::http) fn read(&self, head: &Head) -> Option<String> {
        head.cookie(&self.name)
    }

    pub(in crate::http) fn set(&self, headers: &mut HeaderMap, value: &str, age: Duration) {
        let age = time::Duration::try_from(age).unwrap_or(time::Duration::MAX);
        let cookie = cookie::Cookie::build((&*self.name, value))
            .path(&*self.path)
            .max_age(age)
            .http_only(true)
            .same_site(self.same_site)
            .secure(self.is_secure)
            .build();

        if let Ok(cookie) = HeaderValue::try_from(cookie.to_string()) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }

    pub(in crate::http) fn remove(&self, headers: &mut HeaderMap) {
        self.set(headers, "", Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_the_pages_below_its_path() {
        let cookie = Cookie::below("https://a.example/x/mcp/", "login/", "a");
        let mut headers = HeaderMap::new();
        cookie.set(&mut headers, "b", Duration::from_secs(9));

        let expected = "a=b; HttpOnly; SameSite=Lax; Secure; Path=/x/mcp/login/; Max-Age=9";
        assert_eq!(headers[header::SET_COOKIE], expected);
    }
}
