//! Requests to authorization servers, bounded in size and time.
//!
//! `reqwest` rather than hyper's client, because it has redirects, proxies and
//! TLS with the system's certificates.

use std::time::Duration;

use larder_network::{PublicNames, is_loopback, may_be_public};
use reqwest::{
    Client, ClientBuilder, Method, Request, Url,
    header::{ACCEPT, HeaderValue},
    redirect,
};

/// The timeouts of a connection and of a complete exchange.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response in bytes. Key sets with certificate chains
/// have tens of thousands.
const MAX_BYTES: usize = 512 << 10;
/// The maximum number of redirects, all within one origin.
const MAX_REDIRECTS: usize = 3;

const NOT_PUBLIC: &str = "the address is not public, and another server has named it";

/// Why a request failed. For logs and `larder config check`.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No response came.
    #[error("it cannot be reached: {}", innermost(.0))]
    Request(#[from] reqwest::Error),
    /// No response came from a server that another server has named. The reason is in the log
    /// alone, so that nobody can look into this server's network.
    #[error("it cannot be reached")]
    Unreachable,
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
    /// For URLs that are not the operator's.
    outside: Option<Outside>,
}

/// The limits of requests to URLs that a server has named.
#[derive(Debug, Clone)]
struct Outside {
    /// The URL of the server that names the others, which the operator has configured.
    namer: Url,
    /// Connects to public addresses alone, without a proxy, which would resolve names itself.
    public: Client,
}

impl Outside {
    /// Whether a URL leads to the host that the operator has configured, or, as this host, to
    /// this machine.
    fn is_configured(&self, url: &Url) -> bool {
        url.host() == self.namer.host() || is_loopback(url) && is_loopback(&self.namer)
    }
}

impl Fetcher {
    /// A client without connections, for URLs that the operator has configured or that a server
    /// names which the operator trusts with its secrets.
    ///
    /// # Errors
    /// If the certificates of the system cannot be loaded.
    pub fn new() -> Result<Self, reqwest::Error> {
        let remote = builder().build()?;
        let loopback = builder().no_proxy().build()?;
        Ok(Self { remote, loopback, outside: None })
    }

    /// A client for URLs that the server at `namer` names. They must be at public addresses, after
    /// their names are resolved, unless their host is that of `namer`.
    ///
    /// # Errors
    /// If the certificates of the system cannot be loaded.
    pub fn named_by(&self, namer: Url) -> Result<Self, reqwest::Error> {
        let public = builder().no_proxy().dns_resolver(PublicNames).build()?;
        Ok(Self { outside: Some(Outside { namer, public }), ..self.clone() })
    }

    /// Whether requests to a URL are allowed, as far as that is known before its host is resolved.
    pub fn allows(&self, url: &Url) -> bool {
        let outside = self.outside.as_ref();
        outside.is_none_or(|outside| outside.is_configured(url) || may_be_public(url))
    }

    /// Fetches a document.
    pub async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));

        let (status, body) = self.send(request).await?;
        if status == 200 { Ok(body) } else { Err(FetchError::Status(status)) }
    }

    /// Sends a request and returns status and body.
    pub async fn send(&self, request: Request) -> Result<(u16, Vec<u8>), FetchError> {
        let url = request.url().clone();
        if !self.allows(&url) {
            tracing::warn!(host = url.host_str(), "no request is sent: {NOT_PUBLIC}");
            return Err(FetchError::Unreachable);
        }

        let response = self.client(&url).execute(request).await;
        let read = match response {
            Ok(response) => Self::read(response).await,
            Err(error) => Err(error.into()),
        };

        match read {
            Err(FetchError::Request(error)) if self.outside.is_some() => {
                let cause = innermost(&error);
                tracing::warn!(host = url.host_str(), cause, "a server cannot be reached");
                Err(FetchError::Unreachable)
            }
            read => read,
        }
    }

    fn client(&self, url: &Url) -> &Client {
        match &self.outside {
            Some(outside) if !outside.is_configured(url) => &outside.public,
            _ if is_loopback(url) => &self.loopback,
            _ => &self.remote,
        }
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

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::custom(within_origin))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::net::TcpListener;

    use super::*;

    /// A client for URLs that this server names.
    fn named_by(namer: &str) -> Fetcher {
        crate::install_crypto();
        Fetcher::new().unwrap().named_by(namer.parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn servers_that_another_one_names_are_public_or_one_text_says_that_they_are_not_reached()
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();

        let fetcher = named_by("https://mcp.example/mcp");
        for url in [
            format!("http://0.0.0.0:{port}/"),
            format!("http://[::]:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            format!("http://127.0.0.1:{port}/"),
            format!("http://localhost:{port}/"),
            // This name leads to this machine, which only its resolution shows.
            format!("http://localhost.:{port}/"),
            format!("http://localhost.:{closed}/"),
            format!("http://127.0.0.1:{closed}/"),
            "http://10.255.255.1/".to_owned(),
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "http://[64:ff9b::7f00:1]/".to_owned(),
            "https://no-such-host.invalid/".to_owned(),
        ] {
            let refused = fetcher.get(&url.parse().unwrap()).await.unwrap_err();
            assert_eq!(refused.to_string(), "it cannot be reached", "{url}");
        }

        let connection = futures_util::FutureExt::now_or_never(listener.accept());
        assert!(connection.is_none(), "somebody has connected");
    }

    #[tokio::test]
    async fn the_host_that_the_operator_has_configured_may_be_private() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let allows = |namer: &str, url: &str| named_by(namer).allows(&url.parse().unwrap());

        assert!(allows("https://10.0.0.1/mcp", "https://10.0.0.1:8443/token"));
        assert!(!allows("https://10.0.0.1/mcp", "https://10.0.0.2/token"));
        assert!(allows("http://localhost:1/mcp", &format!("http://127.0.0.1:{port}/")));

        // Failures of the configured host give no reason either.
        let url = format!("http://127.0.0.1:{port}/").parse().unwrap();
        let refused = named_by("http://localhost:1/mcp").get(&url).await.unwrap_err();
        assert_eq!(refused.to_string(), "it cannot be reached");

        let operators = Fetcher::new().unwrap().get(&url).await.unwrap_err().to_string();
        assert!(operators.contains("refused"), "{operators}");
    }
}
