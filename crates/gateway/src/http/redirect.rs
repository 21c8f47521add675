//! Redirects, which are followed within the origin of an upstream: many frameworks send `/mcp` to
//! `/mcp/`. Headers have secrets, so nothing is sent to another origin.

use reqwest::{RequestBuilder, Response, StatusCode, Url, header::LOCATION};

use super::{Http, response::may_be_endpoint};

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 3;

impl Http {
    /// Sends a request, and again to where the server redirects it within its origin. Later
    /// requests find at once what a permanent redirect has led to (RFC 9110, section 15.4), if an
    /// endpoint answers there: the page of a login is none.
    pub(super) async fn send_within_origin(
        &self,
        request: impl Fn(&Url) -> RequestBuilder,
    ) -> reqwest::Result<Response> {
        let mut url = self.url.lock().clone();
        let mut response = request(&url).send().await?;

        // The URL behind the permanent redirects before the first temporary one.
        let mut moved = None;
        let mut is_permanent = true;
        for _ in 0..MAX_REDIRECTS {
            let Some(next) = target(&url, &response) else { break };
            is_permanent &= lasts(response.status());
            url = next;
            if is_permanent {
                moved = Some(url.clone());
            }
            response = request(&url).send().await?;
        }

        if let Some(moved) = moved.filter(|_| may_be_endpoint(&response)) {
            *self.url.lock() = moved;
        }
        Ok(response)
    }
}

/// Whether a redirect holds for later requests.
fn lasts(status: StatusCode) -> bool {
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT)
}

/// The URL to which the response sends the request, within the origin of `url`.
fn target(url: &Url, response: &Response) -> Option<Url> {
    let is_temporary =
        matches!(response.status(), StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT);
    let is_redirect = is_temporary || lasts(response.status());
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
