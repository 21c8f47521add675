//! Protected resource metadata: where clients get tokens for this server
//! (RFC 9728; 2026-07-28, authorization server discovery).

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use super::{Endpoint, error};
use crate::auth::Scopes;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What clients are told of the server as a protected resource.
#[derive(Debug, Clone)]
pub struct Protected {
    /// Where the metadata is, for challenges.
    pub(super) metadata_url: String,
    /// The scopes that everything needs, for challenges.
    pub(super) scope: String,
    document: Bytes,
    paths: Vec<String>,
}

impl Protected {
    /// The resource is the URL under which clients call the server: from its
    /// configuration, because what a request says of it is the client's word.
    ///
    /// ```
    /// use larder::{auth::Scopes, http::Protected};
    ///
    /// let protected = Protected::new("https://mcp.example.com/mcp", "/mcp", ["https://auth.example.com"], &Scopes::default(), Some("Larder"));
    /// assert!(protected.is_some());
    /// assert!(Protected::new("no URL", "/mcp", ["https://auth.example.com"], &Scopes::default(), None).is_none());
    /// ```
    ///
    /// `path` is where the endpoint is behind whatever stands in front of it.
    /// Nothing when `resource` is no URL.
    pub fn new<'a>(
        resource: &str,
        path: &str,
        issuers: impl IntoIterator<Item = &'a str>,
        scopes: &Scopes,
        name: Option<&str>,
    ) -> Option<Self> {
        let (scheme, rest) = resource.split_once("://")?;
        let (authority, public_path) =
            rest.find('/').map_or((rest, ""), |at| (&rest[..at], &rest[at..]));
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

/// The metadata at both places where clients look, open to everyone.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    let paths = endpoint.protected.iter().flat_map(|protected| &protected.paths);
    paths.fold(Router::new(), |router, path| {
        router.route(path, routing::get(document).options(preflight))
    })
}

async fn document(State(endpoint): State<Arc<Endpoint>>) -> Response {
    let document = endpoint.protected.as_ref().map(|p| p.document.clone()).unwrap_or_default();
    let mut response = error::json(StatusCode::OK, document.into());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    open(headers);
    response
}

/// Clients in browsers ask first, because they send the protocol version.
async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    open(headers);
    let names = HeaderValue::from_static("mcp-protocol-version, accept, content-type");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    let methods = HeaderValue::from_static("GET");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    response
}

fn open(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}
