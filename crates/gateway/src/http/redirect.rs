//! Redirects, which are followed within the origin of an upstream: many frameworks send `/mcp` to
//! `/mcp/`. Headers have secrets, so nothing is sent to another origin.

use reqwest::{Response, StatusCode, Url, header::LOCATION};

/// The most redirects of one request.
pub(super) const MAX_REDIRECTS: usize = 3;

/// The URL to which the response sends the request, within the origin of `url`.
pub(super) fn target(url: &Url, response: &Response) -> Option<Url> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    if is_redirect { within_origin(url, location) } else { None }
}

fn within_origin(url: &Url, location: &str) -> Option<Url> {
    let mut next = url.join(location).ok()?;

    // Behind a proxy that ends TLS, servers name their own scheme.
    let is_downgrade = url.scheme() == "https" && next.scheme() == "http";
    if is_downgrade && next.port().is_none() && url.port().is_none() {
        next.set_scheme("https").ok()?;
    }

    let is_other = next.origin() != url.origin() || next.as_str() == url.as_str();
    next.set_fragment(None);
    // Credentials in `url` go on.
    next.set_username(url.username()).ok()?;
    next.set_password(url.password()).ok()?;
    (!is_other).then_some(next)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn redirects_stay_within_the_origin() {
        for (url, location, next) in [
            ("http://a.example/mcp", "/mcp/", Some("http://a.example/mcp/")),
            ("http://a.example/mcp", "mcp/", Some("http://a.example/mcp/")),
            ("http://a.example/mcp", "http://a.example/mcp/", Some("http://a.example/mcp/")),
            ("http://a.example/mcp?k=1", "/v2/mcp?k=1#x", Some("http://a.example/v2/mcp?k=1")),
            ("https://a.example/mcp", "http://a.example/mcp/", Some("https://a.example/mcp/")),
            ("https://a.example/mcp", "https://a.example:443/m", Some("https://a.example/m")),
            ("https://u:p@a.example/mcp", "/mcp/", Some("https://u:p@a.example/mcp/")),
            ("http://a.example/mcp", "https://a.example/mcp", None),
            ("https://a.example:8443/mcp", "http://a.example/mcp", None),
            ("https://a.example/mcp", "https://b.example/mcp", None),
            ("https://a.example/mcp", "//b.example/mcp", None),
            ("https://a.example/mcp", "https://a.example:444/mcp", None),
            ("https://a.example/mcp", "/mcp", None),
            ("https://a.example/mcp", "file:///etc/passwd", None),
            ("https://a.example/mcp", "http://", None),
        ] {
            let found = within_origin(&Url::parse(url).unwrap(), location);
            assert_eq!(found.as_ref().map(Url::as_str), next, "{url} to {location}");
        }
    }
}
