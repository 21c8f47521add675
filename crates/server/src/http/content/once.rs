//! `/content/o/{token}`: a page with a button, which gives one link to download. Only the button
//! consumes it, because previews and scanners of messages follow links.

use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use larder_records::words::number;

use super::link::{self, not_found, unavailable};
use crate::{
    content_link::{ContentLinks, ONCE_PATH, Once},
    http::{
        Endpoint,
        error::Reply,
        head::Head,
        pages::{escape, form_page},
        response::empty,
        route::Incoming,
    },
};

/// Handles a request to a link that works once: sends the page, or the redirect to the content.
pub(in crate::http) async fn handle(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let (links, once) = permitted(&endpoint, &head).ok_or_else(not_found)?;
    let _permit = endpoint.dispatcher.caller_limits().request_of(&once.download.owner)?;
    link::find(&endpoint, &once.download).await?;

    if head.method() == Method::POST {
        if !links.consume(&once).await.map_err(unavailable)? {
            return Err(not_found());
        }
        redirect(links, &once)
    } else {
        if links.is_used(&once).await.map_err(unavailable)? {
            return Err(not_found());
        }
        Ok(page(&once))
    }
}

/// The redirect to the content.
fn redirect(links: &ContentLinks, once: &Once) -> Reply {
    let url = links.consumed_url(once).and_then(|url| HeaderValue::try_from(url).ok());
    let mut response = empty(StatusCode::SEE_OTHER);
    response.headers_mut().insert(header::LOCATION, url.ok_or_else(not_found)?);
    Ok(response)
}

/// The claims of the link that a request is for. None without a valid one.
fn permitted<'a>(endpoint: &'a Endpoint, head: &Head) -> Option<(&'a ContentLinks, Once)> {
    if !matches!(*head.method(), Method::GET | Method::HEAD | Method::POST) {
        return None;
    }

    let links = link::links(endpoint, head)?;
    let token = head.path().strip_prefix(ONCE_PATH)?.strip_prefix('/')?;
    Some((links, links.once(token)?))
}

fn page(once: &Once) -> Response {
    let body = format!(
        "<dl><dt>File</dt><dd><strong>{}</strong>, {} bytes</dd></dl>\
         <p class=\"note\">This link works once: the button uses it up.</p>\
         <form method=\"post\"><p class=\"actions\"><button>Download</button></p></form>",
        escape(&once.file_name),
        number(once.download.size)
    );
    form_page(StatusCode::OK, "Download", &body)
}
