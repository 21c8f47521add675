//! Requests to authorization servers, bounded in size and time.
//!
//! `reqwest` rather than hyper's client, because it has redirects, proxies and
//! TLS with the system's certificates.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};

use super::url::is_loopback;

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
pub enum FetchError {
    /// No response came.
    #[error("it cannot be reached: {}", innermost(.0))]
    Request(#[from] reqwest::Error),
    /// The status is no success.
    #[error("it responds with status {0}")]
    Status(u16),
    /// The body is over the limit.
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
pub struct Fetcher {
    remote: Client,
    /// For this machine, which no proxy can reach.
    loopback: Client,
}

impl Fetcher {
    /// A client without connections.
    ///
    /// # Errors
    /// If the certificates of the system cannot be loaded.
    pub fn new() -> Result<Self, reqwest::Error> {
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
    pub async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let request = self.client(url).get(url.clone()).header("accept", "application/json");
        let (status, body) = Self::read(request.send().await?).await?;
        if status == 200 { Ok(body) } else { Err(FetchError::Status(status)) }
    }

    /// Sends a request and returns status and body.
    pub async fn send(&self, request: reqwest::Request) -> Result<(u16, Vec<u8>), FetchError> {
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
