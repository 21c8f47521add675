//! Redirect URIs of clients: which may be registered, and how a requested one is compared.

use url::Url;

use crate::network::is_loopback_host;

/// The most bytes of a redirect URI.
const MAX_BYTES: usize = 1024;

/// Schemes that a browser or the system handles itself, so that no client can receive a code.
const FORBIDDEN_SCHEMES: [&str; 16] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "javascript",
    "mailto",
    "resource",
    "tel",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

/// Checks a redirect URI that a client registers: `https`, `http` to this machine, or the scheme
/// of an app with a host (RFC 8252, section 7).
pub(super) fn check(uri: &str) -> Result<(), &'static str> {
    if uri.len() > MAX_BYTES {
        return Err("is too long");
    }
    if !uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
        return Err("has characters that no URI has");
    }
    let url = Url::parse(uri).map_err(|_| "is not a URI")?;
    if url.fragment().is_some() {
        return Err("has a fragment");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has credentials");
    }
    if url.cannot_be_a_base() || url.host_str().is_none_or(str::is_empty) {
        return Err("has no host");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if loopback(uri).is_some() => Ok(()),
        "http" => Err("must be https, or http to a loopback address"),
        scheme if FORBIDDEN_SCHEMES.contains(&scheme) => Err("has a scheme that is not allowed"),
        _ => Ok(()),
    }
}

/// Whether a requested URI is the registered one: the same string. At a loopback address the
/// port may be another one (RFC 8252, section 7.3).
pub(super) fn fits(registered: &str, requested: &str) -> bool {
    let loopback_parts = loopback(registered);
    registered == requested || loopback_parts.is_some() && loopback_parts == loopback(requested)
}

/// Whether it leads to this machine, where any process may listen.
pub(super) fn is_loopback(uri: &str) -> bool {
    loopback(uri).is_some()
}

/// Host and rest of an `http` URI to loopback, without the port.
fn loopback(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // After the bracket of an IPv6 address.
    let name = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let end = authority[name..].find(':').map_or(authority.len(), |colon| name + colon);
    let (host, port) = authority.split_at(end);
    let is_port = |port: &str| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_free = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (is_loopback_host(host) && is_free && !rest.contains('#')).then_some((host, rest))
}

/// Where a redirect leads, as users see it.
pub(super) fn destination(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else { return String::new() };
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" => host.to_owned(),
        "http" => format!("{host} (this device)"),
        scheme => format!("the app for {scheme}://{host}"),
    }
}

/// A redirect URI with parameters of a response.
pub(super) fn with_parameters(uri: &str, parameters: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse(uri) else { return uri.to_owned() };
    url.query_pairs_mut().extend_pairs(parameters);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uris_that_lead_to_a_client_can_be_registered() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://a.example/cb?x=1",
            "http://127.0.0.1/callback",
            "http://localhost:33418/",
            "http://[::1]:1/x",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app://host/cb",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "javascript://a.example/%0aalert(1)",
            "JavaScript://a.example/x",
            "data:text/html,x",
            "data://a/x",
            "file:///etc/passwd",
            "http://a.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://localhost@evil.example/cb",
            "http://127.0.0.1:1:2/cb",
            "https://user@a.example/cb",
            "https://a.example/cb#x",
            "https://a.example/c b",
            "https://a.example\\@evil.example/",
            "com.example.app:/cb",
            "mailto:a@b.example",
            "/callback",
            "",
            &format!("https://a.example/{}", "x".repeat(MAX_BYTES)),
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn uris_are_compared_as_strings_and_only_the_port_of_loopback_is_free() {
        let cb = "http://127.0.0.1:3000/cb";
        assert!(fits(cb, cb) && fits(cb, "http://127.0.0.1:61234/cb"));
        assert!(fits("http://localhost/cb", "http://localhost:1/cb"));
        for other in [
            "http://localhost:3000/cb",
            "http://127.0.0.1:3000/cb/",
            "http://127.0.0.1:3000/cb?x",
            "http://127.0.0.1:3000/CB",
            "http://127.0.0.1:3000/../cb",
            "http://127.0.0.1:3000@evil.example/cb",
            "https://127.0.0.1:3000/cb",
        ] {
            assert!(!fits(cb, other), "{other}");
        }
        let web = "https://a.example/cb";
        for other in
            ["https://a.example:444/cb", "https://a.example/cb/../x", "https://A.example/cb"]
        {
            assert!(!fits(web, other), "{other}");
        }
    }

    #[test]
    fn a_response_keeps_the_query_of_the_uri() {
        let with = with_parameters("https://a.example/cb?x=1", &[("code", "a b"), ("iss", "c")]);
        assert_eq!(with, "https://a.example/cb?x=1&code=a+b&iss=c");
    }
}
