//! `/content/d/{token}/{name}`: content for everyone who has a signed link.

use http::Method;
use percent_encoding::percent_decode_str;

use super::{link, representation::Representation};
use crate::{
    content_link::{DOWNLOAD_PATH, Download},
    http::{Endpoint, error::Reply, head::Head, route::Incoming},
};

/// Handles a request to a link.
pub(in crate::http) async fn handle(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let (claims, file_name) = permitted(&endpoint, &head).ok_or_else(link::not_found)?;
    // The permit is held until there is a response.
    let _permit = endpoint.dispatcher.caller_limits().request_of(&claims.owner)?;
    let found = link::find(&endpoint, &claims).await?;

    let representation =
        Representation { found: &found, wanted: claims.disposition, file_name: &file_name };
    let limits = endpoint.dispatcher.caller_limits();
    representation.response(&head, || limits.transfer(&claims.owner))
}

/// The link's permission for the request, and the file name. None without a valid one.
fn permitted(endpoint: &Endpoint, head: &Head) -> Option<(Download, String)> {
    if !matches!(*head.method(), Method::GET | Method::HEAD) {
        return None;
    }

    let links = link::links(endpoint, head)?;
    let rest = head.path().strip_prefix(DOWNLOAD_PATH)?.strip_prefix('/')?;
    let (token, file_name) = rest.split_once('/')?;
    let file_name = percent_decode_str(file_name).decode_utf8().ok()?.into_owned();
    Some((links.download(token, &file_name)?, file_name))
}
