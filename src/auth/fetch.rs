//! Requests to authorization servers, bounded in size and in time.
//!
//! `reqwest` rather than hyper's own client: redirects, proxies and TLS by the
//! system's certificates are just what would have to be written around that.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};

/// How long a connection, and how long a whole exchange may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most that an answer may have, in bytes: key sets with certificate
/// chains have some tens of thousands.
const MOST_BYTES: usize = 512 << 10;
/// How many redirects are followed, all within one origin.
const MOST_REDIRECTS: usize = 3;

/// Why there is no answer. For logs and `larder config check`.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it cannot be reached: {}", innermost(.0))]
    Request(#[from] reqwest::Error),
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("its answer is longer than {MOST_BYTES} bytes")]
    TooLong,
}

/// The innermost cause says what happened; those around it say that something did.
fn innermost(error: &reqwest::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Talks to authorization servers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    remote: Client,
    /// No proxy leads to this machine.
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

    /// Gets a document.
    pub(super) async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let request = self.client(url).get(url.clone()).header("accept", "application/json");
        let (status, body) = Self::answer(request.send().await?).await?;
        if status == 200 { Ok(body) } else { Err(FetchError::Status(status)) }
    }

    /// Sends a request, whatever its status comes to.
    pub(super) async fn send(
        &self,
        request: reqwest::Request,
    ) -> Result<(u16, Vec<u8>), FetchError> {
        let client = self.client(request.url());
        Self::answer(client.execute(request).await?).await
    }

    fn client(&self, url: &Url) -> &Client {
        if is_loopback(url) { &self.loopback } else { &self.remote }
    }

    async fn answer(mut response: reqwest::Response) -> Result<(u16, Vec<u8>), FetchError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(FetchError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response.status().as_u16(), body))
    }
}

/// A redirect elsewhere ends there: the answer is the redirect itself, which
/// is not what was asked for.
fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let asked = attempt.previous().first();
    let same = asked.is_some_and(|asked| asked.origin() == attempt.url().origin());
    if same && attempt.previous().len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn is_loopback(url: &Url) -> bool {
    // As written in URLs: brackets around IPv6.
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A URL that secrets and keys may travel over: `https`, or `http` within this
/// machine (OAuth 2.1, 1.5).
pub(super) fn safe_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is no URL")?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has credentials in it");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err("plain http is accepted for loopback only; use https"),
        _ => Err("it is neither https nor http"),
    }
}

/// Whether secrets and keys may travel over that URL: `https`, or `http`
/// within this machine.
///
/// # Errors
/// Says why not.
pub fn check_url(text: &str) -> Result<(), &'static str> {
    safe_url(text).map(|_| ())
}

/// The URL as it is written by everybody: lower case, no default port, no dots
/// in the path.
///
/// # Errors
/// When it is no `http` or `https` URL with a host and without credentials.
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
