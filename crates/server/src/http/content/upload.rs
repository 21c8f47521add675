//! `/content/u/{token}`: stores one upload of anyone with the link. For people there is a page with
//! a file picker.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{Method, request::Parts};

use super::{
    super::{
        Endpoint,
        checks::cors,
        checks::host_check,
        problem,
        upload::{self, UploadLink, Uploader},
    },
    link::{self, not_found, unavailable},
    representation::add_safe_headers,
    upload_page::page,
};
use crate::content_link::UPLOAD_PATH;

/// What a preflight lists for a link.
const METHODS: &str = "GET, HEAD, PUT, POST, OPTIONS";

/// The same for an upload in parts.
const PART_METHODS: &str = "HEAD, PATCH, DELETE, OPTIONS";

/// Handles a request to a link, or to an upload in parts that it began.
pub(super) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let methods =
        if split(&head).is_some_and(|(_, id)| id.is_some()) { PART_METHODS } else { METHODS };

    let (response, is_page) = match host_check::origin(&endpoint, &head.headers) {
        Err(error) => (error.into_response(), false),
        Ok(()) => match cors::preflight(&head, methods) {
            Some(response) => (response, false),
            None => match serve(&endpoint, &head, body, methods).await {
                Ok(response) => (response, matches!(head.method, Method::GET)),
                Err(refused) => (*refused, false),
            },
        },
    };

    let mut response = problem::instead_of_json_rpc(response);
    // The page sets headers of its own.
    if !is_page {
        add_safe_headers(&mut response);
    }
    cors::add_headers(&head.headers, &mut response);
    response
}

async fn serve(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    methods: &'static str,
) -> Result<Response, Box<Response>> {
    let permitted = permitted(endpoint, head);
    let (link, id) = permitted.ok_or_else(|| Box::new(not_found(head)))?;

    // The permit is held until there is a response.
    let _permit = link::request_permit(endpoint, &link.claims.owner)?;

    let used = link.links.upload_use(&link.claims.id).await;
    let used = used.map_err(|error| Box::new(unavailable(&error)))?;
    if !used.permits(id, link.links.now()) {
        return Err(Box::new(not_found(head)));
    }

    let claims = Arc::clone(&link.claims);
    let uploader = Uploader::Link(link);
    let served = match (&head.method, id) {
        (&Method::GET | &Method::HEAD, None) => Ok(page(&claims, endpoint.options().upload_bytes)),
        (&Method::PUT | &Method::POST, None) => {
            upload::receive(endpoint, head, body, &uploader).await
        }
        (&Method::HEAD, Some(id)) => upload::status(endpoint, head, &uploader, id).await,
        (&Method::PATCH, Some(id)) => upload::append(endpoint, head, body, &uploader, id).await,
        (&Method::DELETE, Some(id)) => upload::cancel(endpoint, head, &uploader, id).await,
        (&Method::OPTIONS, _) => Ok(upload::options(endpoint, methods)),
        _ => return Err(Box::new(not_found(head))),
    };

    served.map_err(|refused| refused.0)
}

/// The link that a request is for, and the ID of an upload in parts. None without a valid link.
fn permitted<'a>(endpoint: &Endpoint, head: &'a Parts) -> Option<(UploadLink, Option<&'a str>)> {
    let links = link::links(endpoint, head)?;
    let (token, id) = split(head)?;
    let claims = links.upload(token).filter(|_| upload::receives(endpoint))?;
    Some((UploadLink { links: Arc::clone(links), claims: Arc::new(claims) }, id))
}

/// The token of the path, and the ID behind it.
fn split(head: &Parts) -> Option<(&str, Option<&str>)> {
    let rest = head.uri.path().strip_prefix(UPLOAD_PATH)?.strip_prefix('/')?;
    Some(rest.split_once('/').map_or((rest, None), |(token, id)| (token, Some(id))))
}
