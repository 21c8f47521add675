//! Redirect URIs of clients: which may be registered, and how a requested one is compared.

use larder_network::is_loopback_host;
use larder_protocol::quote::visible;
use url::Url;

use super::known_callbacks;
/// The most bytes of a redirect URI.
const MAX_BYTES: usize = 1024;

/// Schemes that a browser or the system handles itself, so that no client can receive a code.
const FORBIDDEN_SCHEMES: [&str; 18] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
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

/// The problem of a redirect URI with the scheme of an app that Larder does not know.
const UNKNOWN_APP: &str = "is neither https, nor a callback of a known app, nor has it a scheme that \
                           begins with a domain, such as com.example.app; an operator may add the \
                           scheme to auth.login.redirect_schemes";

/// Domains in reverse order, below which the schemes are those of a system's own apps.
const SYSTEM_DOMAINS: [&str; 1] = ["com.apple"];

/// The schemes of redirect URIs that lead to apps without a known callback: those that begin with
/// a domain of their maker (RFC 8252, section 7.1), and those of the settings.
#[derive(Debug, Default)]
pub(super) struct AppSchemes {
    configured: Vec<String>,
}

impl AppSchemes {
    pub(super) fn new(configured: &[String]) -> Self {
        Self { configured: configured.to_vec() }
    }

    /// Checks a redirect URI of a client: `https`, `http` to this machine, the callback of a known
    /// app, or a URI of an app with a scheme of its own.
    pub(super) fn check(&self, uri: &str) -> Result<(), &'static str> {
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

        match url.scheme() {
            "https" if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(()),
            "http" if loopback(uri).is_some() => Ok(()),
            "http" => Err("must be https, or http to a loopback address"),
            _ if known_callbacks::is_known(uri) => Ok(()),
            _ => self.check_app(&url),
        }
    }

    /// Checks a redirect URI of an app whose callbacks are not known. A query would be chosen by
    /// whoever registers it, and an app may take it as the arguments of a command.
    fn check_app(&self, url: &Url) -> Result<(), &'static str> {
        let scheme = url.scheme();
        let is_configured = self.configured.iter().any(|configured| configured == scheme);
        if !is_configured && !is_reversed_domain(scheme) {
            return Err(UNKNOWN_APP);
        }

        if url.cannot_be_a_base() {
            return Err("has no path");
        }
        if url.query().is_some() {
            return Err("has a query, which an app may take as a command");
        }
        Ok(())
    }
}

/// Whether a scheme is a domain in reverse order: it begins with what may be a top-level domain,
/// all labels are those of host names, and none is the name of a scheme that a browser handles.
fn is_reversed_domain(scheme: &str) -> bool {
    let Some((top, rest)) = scheme.split_once('.') else { return false };

    let is_top = top.starts_with("xn--")
        || top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_of_system = SYSTEM_DOMAINS.iter().any(|domain| {
        scheme.strip_prefix(domain).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });

    is_top
        && is_label(top)
        && rest.split('.').all(is_label)
        && !is_of_system
        && !scheme.split('.').any(|label| FORBIDDEN_SCHEMES.contains(&label))
}

/// Whether a text is a label of a host name (RFC 1123, section 2.1).
fn is_label(label: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';

    (1..=63).contains(&label.len())
        && label.bytes().all(is_part)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Checks a scheme of the settings.
///
/// # Errors
/// What is wrong with it.
pub fn check_app_scheme(scheme: &str) -> Result<(), &'static str> {
    let is_part = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
    };

    let begins = scheme.starts_with(|first: char| first.is_ascii_lowercase());
    if !begins || !scheme.bytes().all(is_part) {
        return Err("it must be a scheme in lower case without ://, such as myapp");
    }
    if FORBIDDEN_SCHEMES.contains(&scheme) {
        return Err("it is no scheme of an app");
    }
    Ok(())
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

    // The port begins after the bracket of an IPv6 address.
    let name = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let end = authority[name..].find(':').map_or(authority.len(), |colon| name + colon);
    let (host, port) = authority.split_at(end);

    let is_port = |port: &str| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_free = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);

    (is_loopback_host(host) && is_free && !rest.contains('#')).then_some((host, rest))
}

/// A redirect URI without the port at a loopback address, which may be another one each time. Two
/// requests with the same answer lead to the same place.
pub(super) fn without_loopback_port(uri: &str) -> String {
    match loopback(uri) {
        Some((host, rest)) => format!("http://{host}{rest}"),
        None => uri.to_owned(),
    }
}

/// The target of a redirect, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host or the app.
    pub name: String,
    /// The whole redirect URI, with the characters escaped that a reader cannot see.
    pub uri: String,
}

impl Destination {
    /// The destination of a redirect URI that was checked, so that the bound cuts none.
    pub(super) fn of(uri: &str) -> Self {
        let shown: String = visible(uri).chars().take(MAX_BYTES).collect();
        Self { name: place(uri), uri: shown }
    }
}

/// The host or the app of a redirect URI.
fn place(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else { return String::new() };
    let host = url.host_str().unwrap_or_default();

    match url.scheme() {
        "https" => host.to_owned(),
        "http" => format!("{host} (this device)"),
        scheme if host.is_empty() => format!("the app for {scheme}:"),
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
        let schemes = AppSchemes::new(&["myapp".to_owned()]);
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://a.example/cb?x=1",
            "http://127.0.0.1/callback",
            "http://localhost:33418/",
            "http://[::1]:1/x",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app://host/cb",
            "com.example.app:/cb",
            "raycast://oauth?package_name=Extension",
            "xn--p1ai.app:/cb",
            "com.x-1.app:/cb",
            "myapp://cb",
        ] {
            assert_eq!(schemes.check(good), Ok(()), "{good}");
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
            "com.example.app:cb",
            "com.:/cb",
            ".com:/cb",
            "com..app:/cb",
            "x-apple.systempreferences:/cb",
            "com.x_1.app:/cb",
            "com.x+1:/cb",
            "com.-x:/cb",
            "com.example.app:/cb?x=1",
            "com.example.app://host/cb?",
            "myapp://cb?x=1",
            "com.apple.systempreferences:/x",
            "com.apple:/x",
            "javascript.x:/",
            "vbscript.example:/",
            "com.javascript:/",
            "com.example.data:/x",
            "vscode://vscode.git/clone?url=https://evil.example/a.git",
            "vscode://vscode.git/clone",
            "cursor://anysphere.cursor-deeplink/mcp/install",
            "goose://extension?cmd=npx",
            "goose://extension",
            "otherapp://cb",
            "ssh://a.example/cb",
            "ms-settings:/cb",
            "mailto:a@b.example",
            "/callback",
            "",
            &format!("https://a.example/{}", "x".repeat(MAX_BYTES)),
        ] {
            assert!(schemes.check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_setting_allows_what_a_browser_handles_itself() {
        assert_eq!(check_app_scheme("myapp+x-1.y"), Ok(()));
        for bad in ["", "javascript", "https", "http", "MyApp", "my app", "myapp:", "1app"] {
            assert!(check_app_scheme(bad).is_err(), "{bad}");
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
    fn a_destination_has_the_whole_uri() {
        let long = format!("https://a.example/{}", "x".repeat(MAX_BYTES - 18));
        for uri in [long.as_str(), "com.example.app:/a/%0a%E2%80%AE/b", "http://[::1]:1/x?y"] {
            assert_eq!(AppSchemes::default().check(uri), Ok(()), "{uri}");
            assert_eq!(Destination::of(uri).uri, uri);
        }

        assert_eq!(Destination::of("com.example.app:/a").name, "the app for com.example.app:");
        assert_eq!(Destination::of("a:/\n\u{202e}b").uri, "a:/\\n\\u{202e}b");
    }

    #[test]
    fn only_the_port_of_loopback_makes_no_difference_to_where_a_redirect_leads() {
        let same = |a, b| without_loopback_port(a) == without_loopback_port(b);

        assert!(same("http://[::1]:1/cb", "http://[::1]:2/cb"));
        assert!(!same("http://127.0.0.1:1/cb", "http://127.0.0.1:1/x"));
        assert!(!same("https://a.example/cb", "https://a.example/x"));
        assert!(!same("https://a.example:1/cb", "https://a.example:2/cb"));
        assert!(!same("com.example.app:/a", "com.example.app:/b"));
    }

    #[test]
    fn a_response_keeps_the_query_of_the_uri() {
        let with = with_parameters("https://a.example/cb?x=1", &[("code", "a b"), ("iss", "c")]);
        assert_eq!(with, "https://a.example/cb?x=1&code=a+b&iss=c");
    }
}
