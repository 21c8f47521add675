//! Pages of the web as resources, fetched when they are read.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt};
use reqwest::{
    Client, Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};

use super::{
    addresses::is_public,
    sniff::{is_text, sniff},
};
use crate::{
    handler::{Context, IntoContent, ResourceError},
    registry::Resource,
    store::Content,
};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How many redirects are followed.
const MOST_REDIRECTS: usize = 3;

/// What stands at an `http` or `https` URL, fetched anew each time and bounded
/// in size (16 MiB by default) and time (30 seconds).
///
/// A URL that comes from outside, or whose name somebody else holds, might lead
/// to the server's own surroundings: databases, metadata services, this server.
/// So only public addresses are visited: each name is resolved once and
/// connected to at just the addresses that were checked, and redirects are held
/// to the same. No proxy is used, since it would resolve names by itself.
///
/// ```
/// use larder::{HttpResource, Registry};
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
    most_bytes: u64,
    timeout: Duration,
}

impl HttpResource {
    /// What stands at that URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            mime_type: None,
            allow_private: false,
            most_bytes: 16 << 20,
            timeout: Duration::from_secs(30),
        }
    }

    /// Another media type than the one that comes with it.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Visits addresses of this machine and of private networks as well. Only
    /// for URLs of the server author's own choice.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.allow_private = true;
        self
    }

    /// The most that may come, in bytes; a reading that meets more fails.
    #[must_use]
    pub fn most_bytes(mut self, bytes: u64) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// How long all of it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The page as a resource of that URI.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let mime_type = self.mime_type.clone();
        let resource = Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()));
        match mime_type {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        }
    }

    async fn fetch(&self) -> Result<Response, Refusal> {
        let url = Url::parse(&self.url).map_err(|_| Refusal::Address)?;
        if !may_visit(&url, self.allow_private) {
            return Err(Refusal::Address);
        }
        let client = client(self.allow_private)?;
        let response = client.get(url).timeout(self.timeout).send().await?;
        match response.status() {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Refusal::NotFound),
            status => return Err(Refusal::Status(status.as_u16())),
        }
        if response.content_length().is_some_and(|length| length > self.most_bytes) {
            return Err(Refusal::TooLong(self.most_bytes));
        }
        Ok(response)
    }
}

impl IntoContent for HttpResource {
    async fn into_content(self) -> Result<Content, ResourceError> {
        let response = self.fetch().await.map_err(ResourceError::from)?;
        let sent = response.headers().get("content-type").and_then(|v| v.to_str().ok());
        let mime_type = self.mime_type.clone().or_else(|| sent.map(str::to_owned));
        let (most, mut seen) = (self.most_bytes, 0_u64);
        let pieces = response.bytes_stream().map_err(io::Error::other).and_then(move |piece| {
            seen += piece.len() as u64;
            let within = if seen > most {
                Err(io::Error::other(format!("more than {most} bytes came")))
            } else {
                Ok(piece)
            };
            std::future::ready(within)
        });
        let content = sniff(pieces.boxed(), mime_type.as_deref().is_none_or(is_text)).await;
        Ok(match mime_type {
            Some(mime_type) => content.with_mime_type(mime_type),
            None => content,
        })
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the page is not there")]
    NotFound,
    #[error("its address is none that this server visits")]
    Address,
    #[error("its server answered with status {0}")]
    Status(u16),
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("its server could not be reached in time")]
    Request(#[from] reqwest::Error),
}

impl From<Refusal> for ResourceError {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::NotFound = refusal {
            return Self::NotFound;
        }
        // A name that leads inside and one that leads nowhere look the same from outside.
        let source = std::error::Error::source(&refusal);
        tracing::warn!(%refusal, ?source, "a page could not be fetched");
        Self::Failed(format!("The page behind this resource cannot be given: {refusal}."))
    }
}

/// Whether a URL may be visited as far as it can be told before its name is resolved.
fn may_visit(url: &Url, allow_private: bool) -> bool {
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    // As written in URLs: brackets around IPv6. Names are looked at by the resolver.
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    plain && !host.is_empty() && (allow_private || literal.map_or(true, is_public))
}

/// One client for all, since it keeps connections and certificates.
fn client(allow_private: bool) -> Result<&'static Client, reqwest::Error> {
    static PUBLIC: OnceLock<Client> = OnceLock::new();
    static ANY: OnceLock<Client> = OnceLock::new();
    let place = if allow_private { &ANY } else { &PUBLIC };
    if let Some(client) = place.get() {
        return Ok(client);
    }
    let policy = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MOST_REDIRECTS {
            attempt.error("too many redirects")
        } else if may_visit(attempt.url(), allow_private) {
            attempt.follow()
        } else {
            attempt.error("a redirect to where this server does not go")
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
    Ok(place.get_or_init(|| client))
}

/// Resolves names to public addresses only. A name with any other address is
/// refused as a whole: who mixes them is up to something.
#[derive(Debug, Clone, Copy)]
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err("the name does not lead to a public address".into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
