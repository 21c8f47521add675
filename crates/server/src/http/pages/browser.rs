//! What browsers send with forms, and cookies.

use http::{HeaderMap, HeaderValue, header};

/// Whether a form was sent by a page of this server.
pub(in crate::http) fn is_same_origin(headers: &HeaderMap, base_url: &str) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let rest = origin.and_then(|origin| base_url.strip_prefix(origin));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The value of a cookie.
pub(in crate::http) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        values.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Sets a cookie for the pages below a path of this server. It comes back after a redirect from
/// another server, and in no request that another page makes.
pub(in crate::http) fn set_cookie(
    headers: &mut HeaderMap,
    name: &str,
    value: &str,
    age: u64,
    base_url: &str,
    path: &str,
) {
    let secure = if base_url.starts_with("https:") { "; Secure" } else { "" };
    let base = base_url.splitn(4, '/').nth(3).unwrap_or_default();
    let base = format!("/{base}").trim_end_matches('/').to_owned();

    let cookie = format!(
        "{name}={value}; Path={base}/{path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"
    );

    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn forms_of_other_pages_are_told_apart() {
        let same = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            is_same_origin(&headers, "https://a.example:8000/mcp")
        };

        assert!(same("https://a.example:8000"));
        for other in [
            "null",
            "http://a.example:8000",
            "https://a.example",
            "https://a.example:80",
            "https://b.example:8000",
        ] {
            assert!(!same(other), "{other}");
        }

        assert!(!is_same_origin(&HeaderMap::new(), "https://a.example:8000/mcp"));
    }

    #[test]
    fn the_cookie_of_a_login_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers
            .append(header::COOKIE, "a=1; larder-login-crm=x; larder-login-b=y".parse().unwrap());

        assert_eq!(cookie(&headers, "larder-login-crm").as_deref(), Some("x"));
        assert_eq!(cookie(&headers, "larder-login-c"), None);
    }

    #[test]
    fn a_cookie_is_for_the_pages_below_its_path() {
        let mut headers = HeaderMap::new();
        set_cookie(&mut headers, "a", "b", 9, "https://a.example/x/mcp/", "login/");

        let expected = "a=b; Path=/x/mcp/login/; Max-Age=9; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(headers[header::SET_COOKIE], expected);
    }
}
