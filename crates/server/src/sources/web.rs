//! Web pages as resources. Each read fetches the page.

use std::{io, sync::OnceLock, time::Duration};

use futures_util::{StreamExt, TryStreamExt};
use larder_network::{PublicNames, may_be_public};
use larder_store::store::Content;
use reqwest::{Client, Response, StatusCode, Url, redirect};

use super::sniff::{is_text, sniff};
use crate::{
    handler::{Context, IntoContent, ResourceError},
    registry::Resource,
};

/// The timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 3;

/// The content of an `http` or `https` URL, fetched for each read. Size (16 MiB by
/// default) and time (30 seconds by default) are limited.
///
/// A URL from a client, or a host name that someone else controls, can lead to
/// the server's own network: databases, metadata services, this server. So only
/// public addresses are allowed. Each host name is resolved once, and the
/// connection uses only the checked addresses. The same holds for redirects. No
/// proxy is used, because a proxy resolves names itself.
///
/// ```
/// use larder_server::{HttpResource, Registry};
///
/// let spec = HttpResource::new("https://www.rfc-editor.org/rfc/rfc3986.txt");
/// let registry = Registry::builder("specs").resource(spec.at("docs://rfc3986")).build();
/// assert!(registry.is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResource {
    url: String,
    mime_type: Option<String>,
    allow_private: bool,
    max_bytes: u64,
    timeout: Duration,
}

impl HttpResource {
    /// The content of that URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            mime_type: None,
            allow_private: false,
            max_bytes: 16 << 20,
            timeout: Duration::from_secs(30),
        }
    }

    /// The media type. Default: that of the response.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Allows addresses of this machine and of private networks. Only for trusted
    /// URLs.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.allow_private = true;
        self
    }

    /// The most bytes to fetch. Reading a larger page fails. Default: 16 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The timeout of the whole fetch. Default: 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Makes the page a resource of that URI.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let mime_type = self.mime_type.clone();
        let resource = Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()));
        match mime_type {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        }
    }

    async fn fetch(&self) -> Result<Response, FetchError> {
        let url = Url::parse(&self.url).map_err(|_| FetchError::Url)?;
        if !is_allowed(&url, self.allow_private) {
            return Err(FetchError::Address);
        }

        let client = client(self.allow_private)?;
        let response = client.get(url).timeout(self.timeout).send().await?;

        match response.status() {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(FetchError::NotFound),
            status => return Err(FetchError::Status(status.as_u16())),
        }

        if response.content_length().is_some_and(|length| length > self.max_bytes) {
            return Err(FetchError::TooLong(self.max_bytes));
        }

        Ok(response)
    }
}

impl IntoContent for HttpResource {
    async fn into_content(self) -> Result<Content, ResourceError> {
        let response = self.fetch().await.map_err(ResourceError::from)?;
        let content_type = response.headers().get("content-type").and_then(|v| v.to_str().ok());
        let mime_type = self.mime_type.clone().or_else(|| content_type.map(str::to_owned));

        let limit = self.max_bytes;
        let mut received = 0_u64;
        let pieces = response.bytes_stream().map_err(io::Error::other).and_then(move |piece| {
            received += piece.len() as u64;
            let piece = if received > limit {
                Err(io::Error::other(format!("the response has more than {limit} bytes")))
            } else {
                Ok(piece)
            };
            std::future::ready(piece)
        });

        let content = sniff(pieces.boxed(), mime_type.as_deref().is_none_or(is_text)).await;
        Ok(match mime_type {
            Some(mime_type) => content.with_mime_type(mime_type),
            None => content,
        })
    }
}

/// Why the page cannot be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the page does not exist")]
    NotFound,
    #[error("its address is not allowed")]
    Address,
    #[error("its URL is not valid")]
    Url,
    #[error("its server responded with status {0}")]
    Status(u16),
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("its server could not be reached in time")]
    Request(#[from] reqwest::Error),
}

impl From<FetchError> for ResourceError {
    fn from(error: FetchError) -> Self {
        if let FetchError::NotFound = error {
            return Self::NotFound;
        }

        // Host names of private addresses and unknown host names give one message, so
        // that callers cannot probe the network.
        let source = std::error::Error::source(&error);
        tracing::warn!(%error, ?source, "a page could not be fetched");
        Self::Failed(format!("The web page of this resource cannot be fetched: {error}."))
    }
}

/// Whether a URL is allowed, as far as that is known before its host is resolved.
fn is_allowed(url: &Url, allow_private: bool) -> bool {
    let is_valid = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    // The resolver checks the addresses of host names.
    is_valid && (allow_private || may_be_public(url))
}

/// The shared client, which pools connections and loads the root certificates once.
fn client(allow_private: bool) -> Result<&'static Client, reqwest::Error> {
    static PUBLIC: OnceLock<Client> = OnceLock::new();
    static ANY: OnceLock<Client> = OnceLock::new();
    let cell = if allow_private { &ANY } else { &PUBLIC };

    if let Some(client) = cell.get() {
        return Ok(client);
    }

    let policy = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if is_allowed(attempt.url(), allow_private) {
            attempt.follow()
        } else {
            attempt.error("a redirect to an address that is not allowed")
        }
    });

    let mut builder = Client::builder()
        .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(policy)
        .referer(false)
        .no_proxy();
    if !allow_private {
        builder = builder.dns_resolver(PublicNames);
    }

    let client = builder.build()?;
    Ok(cell.get_or_init(|| client))
}
