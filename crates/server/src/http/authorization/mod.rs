//! The authorization server over HTTP (`[auth] mode = "login"`), below the endpoint's path: pages
//! for browsers, and JSON for clients.

pub(super) mod clients;
pub(super) mod pages;

use std::{sync::Arc, time::Duration};

use axum::body::{Body, to_bytes};
use larder_login::LoginServer;

use super::{
    Endpoint,
    error::{HttpError, Reply},
    head::Head,
};

/// The longest time for a form or a registration.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The path of the metadata (RFC 8414, section 3).
const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";

/// The paths of the metadata of the server at that URL, whose endpoint has that path here.
pub(super) fn metadata_paths(base_url: &str, path: &str) -> Vec<String> {
    let public_path = base_url.splitn(4, '/').nth(3).unwrap_or_default();
    let mut paths = vec![
        WELL_KNOWN.to_owned(),
        format!("{WELL_KNOWN}/{public_path}").trim_end_matches('/').to_owned(),
        format!("{WELL_KNOWN}{}", path.trim_end_matches('/')),
    ];
    paths.sort();
    paths.dedup();
    paths
}

/// The authorization server of an endpoint whose routes it has.
fn login_server(endpoint: &Endpoint) -> Reply<Arc<LoginServer>> {
    endpoint.login.clone().ok_or_else(|| HttpError::Path(endpoint.options().path.clone()))
}

/// The bounded body of a request.
async fn body(endpoint: &Endpoint, head: &Head, body: Body, max: usize) -> Reply<Vec<u8>> {
    let _slot = endpoint.forms.take(head.peer()).ok_or(HttpError::TooManyForms)?;

    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, max)).await;
    match read {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(HttpError::FormTooLarge(max)),
        Err(_) => Err(HttpError::TooSlow),
    }
}
