//! `/content/o/{token}`: a page with a button, which gives one link to download. Only the button
//! consumes it, because previews and scanners of messages follow links.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use larder_records::preview::words::number;
use larder_store::vault::VaultError;

use super::{
    super::{Endpoint, checks::host_check, problem},
    link::{self, html_page, not_found, unavailable},
    representation::add_safe_headers,
};
use crate::content_link::{ContentLinks, ONCE_PATH, Once};

/// Handles a request to a link that works once.
pub(super) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let (response, is_page) = match host_check::origin(&endpoint, &head.headers) {
        Ok(()) => match serve(&endpoint, &head).await {
            Ok(page) => (page, true),
            Err(error) => (*error, false),
        },
        Err(error) => (error.into_response(), false),
    };

    let mut response = problem::instead_of_json_rpc(response);
    add_safe_headers(&mut response);

    if is_page {
        let headers = response.headers_mut();
        // The form needs an origin, so the page has no sandbox.
        let policy =
            "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    }
    response
}

/// The page, or the redirect to the content.
async fn serve(endpoint: &Endpoint, head: &Parts) -> Result<Response, Box<Response>> {
    let found = permitted(endpoint, head);
    let (links, once) = found.ok_or_else(|| Box::new(not_found(head)))?;
    let _permit = link::request_permit(endpoint, &once.download.owner)?;
    link::find(endpoint, head, &once.download).await?;

    let unavailable = |error: VaultError| Box::new(unavailable(&error));
    if head.method != Method::POST {
        return if links.is_used(&once).await.map_err(unavailable)? {
            Err(Box::new(not_found(head)))
        } else {
            Ok(page(&once))
        };
    }

    if !links.consume(&once).await.map_err(unavailable)? {
        return Err(Box::new(not_found(head)));
    }

    let url = links.consumed_url(&once).and_then(|url| HeaderValue::try_from(url).ok());
    let url = url.ok_or_else(|| Box::new(not_found(head)))?;

    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, url);
    Ok(response)
}

/// The claims of the link that a request is for. None without a valid one.
fn permitted<'a>(endpoint: &'a Endpoint, head: &Parts) -> Option<(&'a ContentLinks, Once)> {
    if !matches!(head.method, Method::GET | Method::HEAD | Method::POST) {
        return None;
    }

    let links = link::links(endpoint, head)?;
    let token = head.uri.path().strip_prefix(ONCE_PATH)?.strip_prefix('/')?;
    Some((links, links.once(token)?))
}

fn page(once: &Once) -> Response {
    let body = format!(
        "<p><strong>{}</strong>, {} bytes</p><p>This link works once.</p>\
         <form method=\"post\"><button>Download</button></form>",
        link::escape(&once.file_name),
        number(once.download.size)
    );
    html_page(StatusCode::OK, "Download", &body)
}
