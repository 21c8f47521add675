//! Protected resource metadata: where clients get tokens for this server (RFC 9728;
//! 2026-07-28, authorization server discovery).

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_oauth::Scopes;
use serde_json::json;

use super::{Endpoint, error};

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

/// Serves the metadata at all paths where clients look, without authentication.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    let paths = endpoint.protected.iter().flat_map(|protected| &protected.paths);
    paths.fold(Router::new(), |router, path| {
        router.route(path, routing::get(document).options(preflight))
    })
}

async fn document(State(endpoint): State<Arc<Endpoint>>) -> Response {
    let document = endpoint.protected.as_ref().map(|p| p.document.clone()).unwrap_or_default();
    let mut response = error::json_response(StatusCode::OK, document.into());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    allow_any_origin(headers);
    response
}

/// Browsers send a preflight, because clients set the protocol version header.
async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_any_origin(headers);
    let names = HeaderValue::from_static("mcp-protocol-version, accept, content-type");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    let methods = HeaderValue::from_static("GET");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    response
}

fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}
