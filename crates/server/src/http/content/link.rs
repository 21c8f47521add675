//! What requests to signed links have in common.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header, request::Parts};
use larder_oauth::Owner;
use larder_protocol::Fault;
use larder_store::{store::StoredResource, vault::VaultError};

use super::super::{Endpoint, checks::host_check, error::fault_response};
use crate::{
    admission::{LimitReached, RequestPermit},
    content_link::{ContentLinks, Download, NOT_FOUND},
    era::Era,
    http::problem::Problem,
};

/// The links of the server, if the request is for the host that they name.
pub(super) fn links<'a>(endpoint: &'a Endpoint, head: &Parts) -> Option<&'a Arc<ContentLinks>> {
    let links = endpoint.dispatcher.registry().content_links()?;
    host_check::is_for(head, links.base()?.host()).then_some(links)
}

/// Counts a request for content of that owner.
pub(super) fn request_permit(
    endpoint: &Endpoint,
    owner: &Owner,
) -> Result<RequestPermit, Box<Response>> {
    let permit = endpoint.dispatcher.caller_limits().request_of(owner);
    permit.map_err(|reached| Box::new(limited(reached)))
}

fn limited(reached: LimitReached) -> Response {
    fault_response(None, &Fault::from(reached), Era::Legacy)
}

/// The content that a link was made for. The URI may have been deleted and used again.
pub(super) async fn find(
    endpoint: &Endpoint,
    head: &Parts,
    claims: &Download,
) -> Result<StoredResource, Box<Response>> {
    let store = endpoint.dispatcher.store();
    match store.granted_revision(&claims.owner, &claims.uri, claims.revision).await {
        Ok(found) if found.entry.created == claims.created && found.entry.size == claims.size => {
            Ok(found)
        }
        Err(error) if !error.is_not_found() => Err(Box::new(Problem::from(error).into_response())),
        _ => Err(Box::new(not_found(head))),
    }
}

/// The response where the use of links cannot be read or noted.
pub(super) fn unavailable(error: &VaultError) -> Response {
    tracing::error!(%error, "the use of links cannot be checked");
    let detail = "The store is not available now; try again shortly.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
}

/// The response to every link that is not valid: a page for browsers.
pub(super) fn not_found(head: &Parts) -> Response {
    let accepts = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("text/html")) {
        return html_page(StatusCode::NOT_FOUND, "Not found", &format!("<p>{NOT_FOUND}</p>"));
    }
    Problem::new(StatusCode::NOT_FOUND, NOT_FOUND).into_response()
}

/// A page without scripts.
pub(super) fn html_page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Larder: {title}</title>\
         <h1>{title}</h1>{body}"
    );

    let mut response = (status, html).into_response();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
