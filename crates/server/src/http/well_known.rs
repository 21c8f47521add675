//! Protected resource metadata: where clients get tokens for this server (RFC 9728;
//! 2026-07-28, authorization server discovery).

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use larder_oauth::Scopes;
use serde_json::json;

use super::{Endpoint, error::Reply, response::json_response, route::Incoming};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of the server as a protected resource.
#[derive(Debug, Clone)]
pub struct ProtectedResource {
    /// The URL of the metadata, for challenges.
    pub(super) metadata_url: String,
    /// The scopes that every request needs, for challenges.
    pub(super) scope: String,

    document: Bytes,
    paths: Vec<String>,
}

impl ProtectedResource {
    /// `resource` is the URL that clients call. It comes from the configuration, because
    /// headers of a request are not trusted.
    ///
    /// ```
    /// use larder_oauth::Scopes;
    /// use larder_server::http::ProtectedResource;
    ///
    /// let protected = ProtectedResource::new("https://mcp.example.com/mcp", "/mcp", ["https://auth.example.com"], &Scopes::default(), Some("Larder"));
    /// assert!(protected.is_some());
    /// assert!(ProtectedResource::new("no URL", "/mcp", ["https://auth.example.com"], &Scopes::default(), None).is_none());
    /// ```
    ///
    /// `path` is the endpoint's path on this server, behind any proxy. None if `resource`
    /// is not a URL.
    pub fn new<'a>(
        resource: &str,
        path: &str,
        issuers: impl IntoIterator<Item = &'a str>,
        scopes: &Scopes,
        name: Option<&str>,
    ) -> Option<Self> {
        let (scheme, rest) = resource.split_once("://")?;
        let (authority, public_path) =
            rest.find('/').map_or((rest, ""), |index| (&rest[..index], &rest[index..]));

        let issuers: Vec<_> = issuers.into_iter().collect();
        let mut document = json!({
            "resource": resource,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if !scopes.is_empty() {
            document["scopes_supported"] = scopes.names().collect();
        }
        if let Some(name) = name {
            document["resource_name"] = json!(name);
        }

        let mut paths = vec![
            WELL_KNOWN.to_owned(),
            format!("{WELL_KNOWN}{public_path}"),
            format!("{WELL_KNOWN}{path}"),
        ];
        paths.sort();
        paths.dedup();

        Some(Self {
            metadata_url: format!("{scheme}://{authority}{WELL_KNOWN}{public_path}"),
            scope: scopes.to_string(),
            document: document.to_string().into(),
            paths,
        })
    }
}

/// All paths where clients look for the metadata.
pub(super) fn paths(endpoint: &Endpoint) -> impl Iterator<Item = &str> {
    endpoint.protected.iter().flat_map(|protected| &protected.paths).map(String::as_str)
}

/// Sends the metadata.
pub(super) async fn document(Incoming { endpoint, .. }: Incoming) -> Reply {
    let document = endpoint.protected.as_ref().map(|p| p.document.clone()).unwrap_or_default();
    let mut response = json_response(StatusCode::OK, document.into());
    let cached = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, cached);
    Ok(response)
}
