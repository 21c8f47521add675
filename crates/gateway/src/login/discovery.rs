//! Discovery of an upstream's authorization server: the metadata of the protected resource
//! (RFC 9728), and that of the server (RFC 8414; OpenID Connect Discovery 1.0).

use larder_oauth::{
    FetchError, Fetcher,
    client::{self, Endpoint, Metadata, WellKnown, or_default},
    safe_url,
};
use larder_protocol::quote::quoted;
use reqwest::Url;
use serde::Deserialize;

use super::Login;

/// An authorization server, as it and the protected resource describe it.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServer {
    /// The protected resource, as tokens name it.
    pub(super) resource: String,
    /// The scopes that the resource suggests.
    pub(super) scopes: Vec<String>,
    pub(super) metadata: ServerMetadata,
}

/// The metadata of an authorization server, with the endpoints that logins use.
#[derive(Debug, Clone)]
pub(super) struct ServerMetadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    /// The URL, if any, or why it is refused, which concerns clients that must register only.
    pub(super) registration_endpoint: Result<Option<Url>, String>,
    /// Missing if its URL is refused: tokens then stay valid until they expire.
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) document: Metadata,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "resource")]
    url: String,
    #[serde(default, deserialize_with = "or_default")]
    authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    scopes_supported: Vec<String>,
}

/// Finds out about the authorization server of an upstream. `metadata` is the URL that the
/// upstream has named.
///
/// # Errors
/// What is wrong or does not respond.
pub(super) async fn discover(
    login: &Login,
    metadata: Option<&str>,
) -> Result<AuthorizationServer, String> {
    let upstream = &login.url;
    let named = Finder { fetcher: &login.fetchers.named, namer: upstream };

    let resource = named.resource(upstream, metadata).await?;
    let own_origin = || vec![upstream.origin().ascii_serialization()];
    let (resource, servers, scopes) = match resource {
        Some(Resource { url: resource, authorization_servers, scopes_supported }) => {
            if !covers(&resource, upstream) {
                return Err(format!(
                    "its metadata is that of another resource, {}",
                    quoted(&resource)
                ));
            }
            let names_none = authorization_servers.is_empty();
            let servers = if names_none { own_origin() } else { authorization_servers };
            (resource, servers, scopes_supported)
        }
        // Servers before RFC 9728 are their own authorization servers.
        None => (without_query(upstream), own_origin(), Vec::new()),
    };

    let metadata = match login.settings.issuer.configured() {
        Some(issuer) if !servers.iter().any(|server| server == issuer) => {
            return Err(format!(
                "it does not name the authorization server {} (upstreams.auth.issuer)",
                quoted(issuer)
            ));
        }
        Some(issuer) => {
            let url = safe_url(issuer)?;
            let configured = Finder { fetcher: &login.fetchers.configured, namer: &url };
            configured.server(issuer).await?
        }
        None => {
            let first = servers.first().ok_or("it names no authorization server")?;
            named.server(first).await?
        }
    };

    Ok(AuthorizationServer { resource, scopes, metadata })
}

/// The URL of a resource, as authorization servers get it (RFC 8707, section 2): without the query,
/// which may have a key.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

struct Finder<'a> {
    fetcher: &'a Fetcher,
    /// The configured server that names the others.
    namer: &'a Url,
}

impl Finder<'_> {
    /// A URL that may be used: `https`, or `http` to loopback if the server that names it is there,
    /// too.
    fn url(&self, text: &str) -> Result<Url, String> {
        let url = client::url_named_by(self.namer, text)
            .map_err(|problem| format!("{}: {problem}", quoted(text)))?;
        if !self.fetcher.allows(&url) {
            return Err(format!(
                "{}: it is not at a public address, and upstreams.auth.issuer does not name its \
                 authorization server",
                quoted(text)
            ));
        }
        Ok(url)
    }

    /// The metadata at a URL. `None` if there is none: some servers answer each path with a page.
    async fn fetch(&self, url: &Url) -> Result<Option<Resource>, String> {
        match self.fetcher.get(url).await {
            Ok(document) => {
                let read = client::document(&document);
                let read = read.inspect_err(|problem| {
                    tracing::debug!(%url, problem, "a document is no metadata of a resource");
                });
                Ok(read.ok())
            }
            Err(FetchError::Status(400..=499)) => Ok(None),
            Err(error) => Err(format!("{}: {error}", quoted(url.as_str()))),
        }
    }

    /// The metadata of the protected resource, if it has any.
    async fn resource(
        &self,
        upstream: &Url,
        named: Option<&str>,
    ) -> Result<Option<Resource>, String> {
        if let Some(named) = named
            && let Some(found) = self.fetch(&self.url(named)?).await?
        {
            return Ok(Some(found));
        }

        const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
        let path = upstream.path().trim_end_matches('/');
        let mut paths = vec![format!("{WELL_KNOWN}{path}"), WELL_KNOWN.to_owned()];
        paths.dedup();

        let mut problem = named.map(|named| format!("{}: no metadata", quoted(named)));
        for path in paths {
            let mut url = upstream.clone();
            url.set_path(&path);
            url.set_query(None);
            match self.fetch(&url).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(error) => problem = Some(error),
            }
        }

        problem.map_or(Ok(None), Err)
    }

    async fn server(&self, issuer: &str) -> Result<ServerMetadata, String> {
        self.url(issuer)?;
        let read = |document| self.read(document);
        let found = client::discover(self.fetcher, issuer, WellKnown::Any, read).await;
        found.map_err(|error| {
            format!("the authorization server {}: {}", quoted(issuer), error.decisive())
        })
    }

    fn read(&self, document: Metadata) -> Result<ServerMetadata, String> {
        let url = |text: &str| self.url(text);
        let authorization_endpoint = document.required(Endpoint::Authorization, url)?;
        let token_endpoint = document.required(Endpoint::Token, url)?;
        let registration_endpoint = document.optional(Endpoint::Registration, url);
        let revocation_endpoint =
            document.optional(Endpoint::Revocation, url).unwrap_or_else(|problem| {
                tracing::warn!(problem, "an authorization server's endpoint is not used");
                None
            });

        // 2026-07-28, authorization code protection: a server that does not say so is refused.
        if document.supports_pkce() != Some(true) {
            return Err("it does not support PKCE with S256".to_owned());
        }

        Ok(ServerMetadata {
            authorization_endpoint,
            token_endpoint,
            registration_endpoint,
            revocation_endpoint,
            document,
        })
    }
}

/// Whether the resource of metadata is that of the upstream: the same origin, and its path or a
/// part of it.
fn covers(resource: &str, upstream: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    resource.origin() == upstream.origin()
        && upstream
            .path()
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let upstream = Url::parse("https://a.example/mcp/x").unwrap();
        for good in [
            "https://a.example/mcp/x",
            "https://a.example/mcp",
            "https://A.example:443",
            "https://a.example/",
        ] {
            assert!(covers(good, &upstream), "{good}");
        }

        for bad in [
            "https://b.example/mcp/x",
            "http://a.example/mcp/x",
            "https://a.example/mc",
            "https://a.example/mcp/x/y",
            "x",
        ] {
            assert!(!covers(bad, &upstream), "{bad}");
        }
    }

    #[test]
    fn a_remote_server_names_public_addresses() {
        larder_oauth::install_crypto();
        let configured = Fetcher::new().unwrap();
        let url = |namer: &str, text: &str| {
            let namer = Url::parse(namer).unwrap();
            let named = configured.named_by(namer.clone()).unwrap();
            Finder { fetcher: &named, namer: &namer }.url(text).is_ok()
        };

        assert!(url("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/x"));
        assert!(url("https://a.example/mcp", "https://b.example"));
        assert!(url("https://10.0.0.1/mcp", "https://10.0.0.1/x"));

        for bad in [
            "http://127.0.0.1:1/x",
            "https://localhost/x",
            "https://[::ffff:127.0.0.1]/x",
            "https://0.0.0.0/x",
            "https://10.0.0.1/x",
            "https://169.254.169.254/x",
            "http://b.example",
            "file:///x",
        ] {
            assert!(!url("https://a.example/mcp", bad), "{bad}");
        }

        let issuer = Url::parse("https://10.0.0.1").unwrap();
        let finder = Finder { fetcher: &configured, namer: &issuer };
        assert!(finder.url("https://10.0.0.2/token").is_ok());
        assert!(finder.url("https://localhost/token").is_err());
    }

    #[test]
    fn the_query_of_the_upstream_is_not_passed_on() {
        let upstream = Url::parse("https://a.example/mcp?api_key=hush#x").unwrap();
        assert_eq!(without_query(&upstream), "https://a.example/mcp");
    }
}
