//! The checks that all requests to signed links share.

use std::sync::Arc;

use http::StatusCode;
use larder_store::{store::StoredResource, vault::VaultError};

use crate::{
    content_link::{ContentLinks, Download, NOT_FOUND},
    http::{
        Endpoint,
        checks::host_check,
        error::{HttpError, Reply},
        head::Head,
        problem::Problem,
    },
};

/// The links of the server, if the request is for the host that they name.
pub(super) fn links<'a>(endpoint: &'a Endpoint, head: &Head) -> Option<&'a Arc<ContentLinks>> {
    let links = endpoint.dispatcher.registry().content_links()?;
    host_check::is_for(head, links.base()?.host()).then_some(links)
}

/// The content that a link was made for. The URI may have been deleted and used again.
pub(super) async fn find(endpoint: &Endpoint, claims: &Download) -> Reply<StoredResource> {
    let store = endpoint.dispatcher.store();
    match store.granted_revision(&claims.owner, &claims.uri, claims.revision).await {
        Ok(found) if found.entry.created == claims.created && found.entry.size == claims.size => {
            Ok(found)
        }
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Err(not_found()),
    }
}

/// The use of links cannot be read or noted.
#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
pub(super) fn unavailable(error: VaultError) -> HttpError {
    tracing::error!(%error, "the use of links cannot be checked");
    let detail = "The store is not available now; try again shortly.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into()
}

/// The error for every link that is not valid.
pub(super) fn not_found() -> HttpError {
    Problem::new(StatusCode::NOT_FOUND, NOT_FOUND).into()
}
