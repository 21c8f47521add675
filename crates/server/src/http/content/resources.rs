//! `/resources?uri=…`: resources of a caller with a bearer token, for scripts.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use larder_oauth::{Grant, Identity};
use larder_protocol::quote::quoted;
use larder_store::store::{ResourceUri, StoreError};
use percent_encoding::percent_decode_str;

use super::{
    super::{
        Endpoint,
        checks::bearer,
        checks::cors,
        checks::host_check,
        content::conditions::{self, entity_tag},
        problem::{self, Refused},
        upload::{self, Uploader},
    },
    representation::Representation,
};
use crate::{
    content_link::{Disposition, file_name},
    http::problem::Problem,
};

/// What `Allow` and the preflight list.
const METHODS: &str = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

/// The tool that does the same as DELETE, and whose scopes it needs.
const DELETE_TOOL: &str = "delete_resource";

/// The same for an upload that can be resumed.
const UPLOAD_METHODS: &str = "HEAD, PATCH, DELETE, OPTIONS";

/// Handles a request to the path.
pub(super) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    serve(&endpoint, request, METHODS, async |head, body, identity| match head.method {
        Method::GET | Method::HEAD => read(&endpoint, head, identity).await,
        Method::DELETE => delete(&endpoint, head, identity).await,
        Method::PUT | Method::POST => {
            upload::receive(&endpoint, head, body, &Uploader::Caller(identity)).await
        }
        Method::OPTIONS => Ok(upload::options(&endpoint, METHODS)),
        _ => Err(method_not_allowed(&head.method, METHODS)),
    })
    .await
}

/// Handles a request to an upload that can be resumed.
pub(super) async fn handle_upload(
    State(endpoint): State<Arc<Endpoint>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    serve(&endpoint, request, UPLOAD_METHODS, async |head, body, identity| match head.method {
        Method::HEAD => upload::status(&endpoint, head, &Uploader::Caller(identity), &id).await,
        Method::PATCH => {
            upload::append(&endpoint, head, body, &Uploader::Caller(identity), &id).await
        }
        Method::DELETE => upload::cancel(&endpoint, head, &Uploader::Caller(identity), &id).await,
        Method::OPTIONS => Ok(upload::options(&endpoint, UPLOAD_METHODS)),
        _ => Err(method_not_allowed(&head.method, UPLOAD_METHODS)),
    })
    .await
}

/// Checks a request of a caller with a bearer token. Errors are problem documents.
async fn serve(
    endpoint: &Endpoint,
    request: Request,
    methods: &'static str,
    handle: impl AsyncFnOnce(&Parts, Body, &Identity) -> Result<Response, Refused>,
) -> Response {
    let (head, body) = request.into_parts();
    if let Err(error) = host_check::origin(endpoint, &head.headers) {
        return problem::instead_of_json_rpc(error.into_response());
    }

    let response = match cors::preflight(&head, methods) {
        Some(response) => response,
        None => admit(endpoint, &head, body, handle).await,
    };

    let mut response = problem::instead_of_json_rpc(response);
    cors::add_headers(&head.headers, &mut response);
    response
}

async fn admit(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    handle: impl AsyncFnOnce(&Parts, Body, &Identity) -> Result<Response, Refused>,
) -> Response {
    // The permit is held until there is a response.
    let (identity, _permit) = match bearer::authenticate(endpoint, head).await {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };

    let served = handle(head, body, &identity).await;
    let mut response = served.unwrap_or_else(|refused| *refused.0);
    bearer::challenge(endpoint, &mut response);
    response
}

async fn read(endpoint: &Endpoint, head: &Parts, identity: &Identity) -> Result<Response, Refused> {
    let Query { uri, revision } = Query::of(head)?;
    let dispatcher = &endpoint.dispatcher;
    dispatcher.authorize_read(uri.as_str(), identity)?;

    let found = dispatcher.store().read_revision(identity, &uri, revision).await?;
    let file_name = file_name(&found.entry.name);
    let representation =
        Representation { found: &found, wanted: Disposition::Attachment, file_name: &file_name };

    let limits = dispatcher.caller_limits();
    Ok(representation.response(head, || limits.transfer(identity.owner())))
}

async fn delete(
    endpoint: &Endpoint,
    head: &Parts,
    identity: &Identity,
) -> Result<Response, Refused> {
    let Query { uri, revision } = Query::of(head)?;
    if revision.is_some() {
        let detail = "DELETE removes all revisions: leave out revision.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
    }

    let (dispatcher, store) = (&endpoint.dispatcher, endpoint.dispatcher.store());
    if !dispatcher.registry().offers(&Grant::All, DELETE_TOOL) {
        let detail = "This server does not let callers delete resources (tools.write).";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).into());
    }
    dispatcher.authorize_tool(DELETE_TOOL, identity)?;

    let deleted = if head.headers.contains_key(header::IF_MATCH) {
        let entry = store.get(identity.owner(), &uri).await?.entry;
        let tag = entity_tag(&entry);
        if !conditions::if_match(&head.headers, &tag) || !store.delete_unchanged(&entry).await? {
            let detail = "The resource has changed since: nothing was deleted.";
            return Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail).into());
        }
        true
    } else {
        store.delete(identity.owner(), &uri).await?
    };

    if deleted {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(StoreError::NotFound { uri }.into())
    }
}

fn method_not_allowed(method: &Method, methods: &'static str) -> Refused {
    let detail = format!("{} is not allowed here. Use {methods}.", quoted(method.as_str()));
    let mut response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    Refused(Box::new(response))
}

/// The parameters of a request.
#[derive(Debug)]
struct Query {
    uri: ResourceUri,
    revision: Option<u64>,
}

impl Query {
    /// A `+` is not a space here: URIs have none.
    fn of(head: &Parts) -> Result<Self, Problem> {
        let problem = |detail: String| Problem::new(StatusCode::BAD_REQUEST, detail);
        let (mut uri, mut revision) = (None, None);
        let pairs = head.uri.query().unwrap_or_default().split('&');

        for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            let value = percent_decode_str(value).decode_utf8_lossy();
            let is_first = match name {
                "uri" => uri.replace(value).is_none(),
                "revision" => revision.replace(value).is_none(),
                "" => true,
                other => {
                    return Err(problem(format!(
                        "Unknown parameter {}. Percent-encode the URI: curl -G --data-urlencode 'uri=…'.",
                        quoted(other)
                    )));
                }
            };

            if !is_first {
                return Err(problem(format!("The parameter {name} is given twice.")));
            }
        }

        let missing = || problem("The parameter uri is missing: /resources?uri=….".into());
        let uri = ResourceUri::parse(&uri.ok_or_else(missing)?).map_err(StoreError::from)?;
        let revision = revision.map(|text| {
            text.parse().map_err(|_| problem(format!("{} is no revision.", quoted(&text))))
        });

        Ok(Self { uri, revision: revision.transpose()? })
    }
}
