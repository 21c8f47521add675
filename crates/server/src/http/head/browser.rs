//! Facts that browsers add to a request: the page that sent it, and cookies.

use http::{HeaderName, HeaderValue, header, uri::Authority};

use super::Head;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Head {
    /// Whether a form was sent by a page of the server at that URL. Browsers name the origin of
    /// each form.
    pub(in crate::http) fn is_form_of(&self, base_url: &str) -> bool {
        let origin = self.text(&header::ORIGIN);
        let rest = origin.and_then(|origin| base_url.strip_prefix(origin));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether the browser says that another site's page sent the request.
    pub(in crate::http) fn is_from_another_site(&self) -> bool {
        let site = self.first(&FETCH_SITE).map(HeaderValue::as_bytes);
        site.is_some_and(|site| site != b"same-origin" && site != b"none")
    }

    /// The host and port that the request is for, which `host_check` has allowed.
    pub(in crate::http) fn host_and_port(&self) -> Option<&str> {
        let host = self.text(&header::HOST);
        host.or_else(|| self.target().authority().map(Authority::as_str))
    }

    /// The value of a cookie.
    pub(in crate::http) fn cookie(&self, name: &str) -> Option<String> {
        let values = self.values(&header::COOKIE).filter_map(|value| value.to_str().ok());
        let mut cookies = values.flat_map(cookie::Cookie::split_parse).flatten();
        cookies.find(|cookie| cookie.name() == name).map(|cookie| cookie.value().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_pages_are_told_apart() {
        let base = "https://a.example:8000/mcp";
        let same = |origin: &str| Head::of(&[(header::ORIGIN, origin)]).is_form_of(base);

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

        assert!(!Head::of(&[]).is_form_of(base));
    }

    #[test]
    fn the_cookie_of_a_login_is_found_among_others() {
        let head = Head::of(&[(header::COOKIE, "a=1; larder-login-crm=x; larder-login-b=y")]);
        assert_eq!(head.cookie("larder-login-crm").as_deref(), Some("x"));
        assert_eq!(head.cookie("larder-login-c"), None);
    }

    #[test]
    fn cookies_are_read_as_browsers_and_proxies_join_them() {
        for (sent, expected) in [
            (&["x=1"][..], Some("1")),
            (&["a=b;x=1"], Some("1")),
            (&["a=b; x = 1 ; c=d"], Some("1")),
            (&["nonsense; =; x=1"], Some("1")),
            (&["x=1; x=2"], Some("1")),
            (&["a=b", "x=1"], Some("1")),
            (&["x=a=b"], Some("a=b")),
            (&["x="], Some("")),
            (&["X=1"], None),
            (&["ax=1; x"], None),
            (&[], None),
        ] {
            let headers: Vec<_> = sent.iter().map(|sent| (header::COOKIE, *sent)).collect();
            assert_eq!(Head::of(&headers).cookie("x").as_deref(), expected, "{sent:?}");
        }
    }
}
