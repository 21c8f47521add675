//! URLs that secrets and keys may travel over.

use larder_network::{is_loopback, is_unspecified};
use url::Url;

/// Parses a URL that is safe for secrets and keys: `https`, or `http` to
/// loopback (OAuth 2.1, section 1.5).
pub fn safe_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is not a URL")?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains credentials");
    }
    if is_unspecified(&url) {
        return Err("its address is that of no server; use 127.0.0.1 for this machine");
    }

    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err("plain http is accepted for loopback only; use https"),
        _ => Err("it is neither https nor http"),
    }
}

/// Checks that a URL is safe for secrets and keys: `https`, or `http` to
/// loopback.
///
/// # Errors
/// Why the URL is not safe.
pub fn check_url(text: &str) -> Result<(), &'static str> {
    safe_url(text).map(|_| ())
}

/// The normalized URL: scheme and host in lower case, no default port, no dot
/// segments.
///
/// # Errors
/// If it is not an `http` or `https` URL with a host and without credentials.
pub fn canonical_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_web || !url.username().is_empty() || url.password().is_some() {
        return Err("it must look like https://mcp.example.com/mcp".into());
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_accepted_for_loopback_only() {
        for good in
            ["https://a.example", "http://127.0.0.1:9000", "http://localhost/x", "http://[::1]:1"]
        {
            assert!(safe_url(good).is_ok(), "{good}");
        }

        for bad in [
            "http://a.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "ftp://localhost",
            "file:///etc/passwd",
            "https://user:secret@a.example",
            "https://0.0.0.0/x",
            "https://[::]/x",
            "a.example",
            "",
        ] {
            assert!(safe_url(bad).is_err(), "{bad}");
        }
    }
}
