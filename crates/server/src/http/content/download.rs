//! `/content/d/{token}/{name}`: content for everyone who has a signed link.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{Method, request::Parts};
use percent_encoding::percent_decode_str;

use super::{
    super::{Endpoint, checks::host_check, problem},
    link,
    representation::{Representation, add_safe_headers},
};
use crate::content_link::{DOWNLOAD_PATH, Download};

/// Handles a request to a link.
pub(super) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let response = match host_check::origin(&endpoint, &head.headers) {
        Ok(()) => send(&endpoint, &head).await.unwrap_or_else(|refused| *refused),
        Err(error) => error.into_response(),
    };

    let mut response = problem::instead_of_json_rpc(response);
    add_safe_headers(&mut response);
    response
}

async fn send(endpoint: &Endpoint, head: &Parts) -> Result<Response, Box<Response>> {
    let permitted = permitted(endpoint, head);
    let (claims, file_name) = permitted.ok_or_else(|| Box::new(link::not_found(head)))?;
    // The permit is held until there is a response.
    let _permit = link::request_permit(endpoint, &claims.owner)?;
    let found = link::find(endpoint, head, &claims).await?;

    let representation =
        Representation { found: &found, wanted: claims.disposition, file_name: &file_name };
    let limits = endpoint.dispatcher.caller_limits();
    Ok(representation.response(head, || limits.transfer(&claims.owner)))
}

/// What a request is permitted by its link, and the file name. None without a valid one.
fn permitted(endpoint: &Endpoint, head: &Parts) -> Option<(Download, String)> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }

    let links = link::links(endpoint, head)?;
    let rest = head.uri.path().strip_prefix(DOWNLOAD_PATH)?.strip_prefix('/')?;
    let (token, file_name) = rest.split_once('/')?;
    let file_name = percent_decode_str(file_name).decode_utf8().ok()?.into_owned();
    Some((links.download(token, &file_name)?, file_name))
}
