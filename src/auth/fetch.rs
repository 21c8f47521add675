//! Requests to authorization servers, bounded in size and time.
//!
//! `reqwest` rather than hyper's client, because it has redirects, proxies and
//! TLS with the system's certificates.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};

/// The timeouts of a connection and of a complete exchange.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response in bytes. Key sets with certificate chains
/// have tens of thousands.
const MAX_BYTES: usize = 512 << 10;
/// The maximum number of redirects, all within one origin.
const MAX_REDIRECTS: usize = 3;

/// Why a request failed. For logs and `larder config check`.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it cannot be reached: {}", innermost(.0))]
    Request(#[from] reqwest::Error),
    #[error("it responds with status {0}")]
    Status(u16),
    #[error("its response is larger than {MAX_BYTES} bytes")]
    TooLong,
}

/// The innermost cause, which is the most specific.
fn innermost(error: &reqwest::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// An HTTP client for authorization servers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    remote: Client,
    /// For this machine, which no proxy can reach.
    loopback: Client,
}

impl Fetcher {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let client = || -> ClientBuilder {
            Client::builder()
                .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(TIMEOUT)
                .redirect(redirect::Policy::custom(within_origin))
        };
        Ok(Self { remote: client().build()?, loopback: client().no_proxy().build()? })
    }

    /// Fetches a document.
    pub(super) async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let request = self.client(url).get(url.clone()).header("accept", "application/json");
        let (status, body) = Self::read(request.send().await?).await?;
        if status == 200 { Ok(body) } else { Err(FetchError::Status(status)) }
    }

    /// Sends a request and returns status and body.
    pub(super) async fn send(
        &self,
        request: reqwest::Request,
    ) -> Result<(u16, Vec<u8>), FetchError> {
        let client = self.client(request.url());
        Self::read(client.execute(request).await?).await
    }

    fn client(&self, url: &Url) -> &Client {
        if is_loopback(url) { &self.loopback } else { &self.remote }
    }

    async fn read(mut response: reqwest::Response) -> Result<(u16, Vec<u8>), FetchError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(FetchError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response.status().as_u16(), body))
    }
}

/// Follows redirects within the origin. Another redirect is returned as the
/// response, whose status then fails the request.
fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let requested = attempt.previous().first();
    let is_same = requested.is_some_and(|url| url.origin() == attempt.url().origin());
    if is_same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn is_loopback(url: &Url) -> bool {
    // IPv6 addresses in URLs have brackets.
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Parses a URL that is safe for secrets and keys: `https`, or `http` to
/// loopback (OAuth 2.1, section 1.5).
pub(super) fn safe_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is not a URL")?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains credentials");
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
            "a.example",
            "",
        ] {
            assert!(safe_url(bad).is_err(), "{bad}");
        }
    }
}
