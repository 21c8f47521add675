//! `/content/u/{token}`: stores one upload of anyone with the link. For people there is a page with
//! a file picker.

use std::sync::Arc;

use http::Method;

use super::{
    link::{self, not_found, unavailable},
    upload_page::page,
};
use crate::{
    admission::RequestPermit,
    content_link::UPLOAD_PATH,
    http::{
        Endpoint,
        error::Reply,
        head::Head,
        route::Incoming,
        upload::{self, UploadLink, Uploader},
    },
};

/// The methods of a link.
pub(in crate::http) const METHODS: &str = "GET, HEAD, PUT, POST, OPTIONS";

/// The methods of an upload in parts.
pub(in crate::http) const PART_METHODS: &str = "HEAD, PATCH, DELETE, OPTIONS";

/// Handles a request to a link.
pub(in crate::http) async fn handle(Incoming { endpoint, head, body }: Incoming) -> Reply {
    let Admitted { link, _permit, .. } = admit(&endpoint, &head).await?;
    let claims = Arc::clone(&link.claims);
    let uploader = Uploader::Link(link);

    match *head.method() {
        Method::GET | Method::HEAD => Ok(page(&claims, endpoint.options().upload_bytes)),
        Method::PUT | Method::POST => upload::receive(&endpoint, &head, body, &uploader).await,
        Method::OPTIONS => Ok(upload::options(&endpoint, METHODS)),
        _ => Err(not_found()),
    }
}

/// Handles a request to an upload in parts that a link began.
pub(in crate::http) async fn handle_part(Incoming { endpoint, head, body }: Incoming) -> Reply {
    let Admitted { link, id, _permit } = admit(&endpoint, &head).await?;
    let uploader = Uploader::Link(link);
    let id = id.unwrap_or_default();

    match *head.method() {
        Method::HEAD => upload::status(&endpoint, &head, &uploader, id).await,
        Method::PATCH => upload::append(&endpoint, &head, body, &uploader, id).await,
        Method::DELETE => upload::cancel(&endpoint, &head, &uploader, id).await,
        Method::OPTIONS => Ok(upload::options(&endpoint, PART_METHODS)),
        _ => Err(not_found()),
    }
}

/// A request that its link permits.
struct Admitted<'a> {
    link: UploadLink,
    /// The ID of the upload in parts that the request is for.
    id: Option<&'a str>,
    /// Held until there is a response.
    _permit: RequestPermit,
}

async fn admit<'a>(endpoint: &Endpoint, head: &'a Head) -> Reply<Admitted<'a>> {
    let (link, id) = permitted(endpoint, head).ok_or_else(not_found)?;
    let permit = endpoint.dispatcher.caller_limits().request_of(&link.claims.owner)?;

    let used = link.links.upload_use(&link.claims.id).await.map_err(unavailable)?;
    if !used.permits(id, link.links.now()) {
        return Err(not_found());
    }

    Ok(Admitted { link, id, _permit: permit })
}

/// The link that a request is for, and the ID of an upload in parts. None without a valid link.
fn permitted<'a>(endpoint: &Endpoint, head: &'a Head) -> Option<(UploadLink, Option<&'a str>)> {
    let links = link::links(endpoint, head)?;
    let rest = head.path().strip_prefix(UPLOAD_PATH)?.strip_prefix('/')?;
    let (token, id) = rest.split_once('/').map_or((rest, None), |(token, id)| (token, Some(id)));

    let claims = links.upload(token).filter(|_| upload::receives(endpoint))?;
    Some((UploadLink { links: Arc::clone(links), claims: Arc::new(claims) }, id))
}
